/* Binds what moved between C libraries to its oldest version, so that one build starts in old images too.
 * Included before anything else that declares these. */
#pragma once

#if defined(__x86_64__)
#define GUARD_OLDEST "GLIBC_2.2.5"
#elif defined(__aarch64__)
#define GUARD_OLDEST "GLIBC_2.17"
#endif

#ifdef GUARD_OLDEST
__asm__(".symver dlopen,dlopen@" GUARD_OLDEST);
__asm__(".symver dlsym,dlsym@" GUARD_OLDEST);
__asm__(".symver dladdr,dladdr@" GUARD_OLDEST);
__asm__(".symver pthread_once,pthread_once@" GUARD_OLDEST);
__asm__(".symver pthread_create,pthread_create@" GUARD_OLDEST);
__asm__(".symver pthread_detach,pthread_detach@" GUARD_OLDEST);
__asm__(".symver pthread_sigmask,pthread_sigmask@" GUARD_OLDEST);
__asm__(".symver pthread_rwlock_rdlock,pthread_rwlock_rdlock@" GUARD_OLDEST);
__asm__(".symver pthread_rwlock_wrlock,pthread_rwlock_wrlock@" GUARD_OLDEST);
__asm__(".symver pthread_rwlock_unlock,pthread_rwlock_unlock@" GUARD_OLDEST);
#endif
