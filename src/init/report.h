#pragma once

// What drover-init says by its --report, a line each: the one word, or a word and a number.

#define DROVER_INIT_RUNNING "running"  // the command was started
#define DROVER_INIT_FILTER "filter"    // its filter of system calls cannot be put in place: errno
#define DROVER_INIT_FOLDER "folder"    // the working folder cannot be entered: errno
#define DROVER_INIT_COMMAND "command"  // the command cannot be started: errno
#define DROVER_INIT_SIGNAL "signal"    // the command was ended by this signal
