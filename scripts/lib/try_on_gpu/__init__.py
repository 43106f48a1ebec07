"""What a real GPU does with Drover's guard, and with Drover: scripts/try-on-gpu asks, and this package knows how.

`trial` runs checks within their time and keeps what they found; `machine` knows the driver's libraries, the guard's, and who uses which;
`child` is what runs in processes of its own, since a driver may crash or hang; the modules of `checks` ask one kind of question each.
Python's standard library alone.
"""
