/* A user database whose directory service takes its time: after SLOW_DIRECTORY_SECONDS it knows every uid
   from 70000 on. Named "slow" in nsswitch.conf. */

#include <errno.h>
#include <nss.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { kFirst = 70000, kLongest = 64 };

enum nss_status _nss_slow_getpwuid_r(uid_t uid, struct passwd* entry, char* buffer, size_t size, int* error) {
  const char* seconds = getenv("SLOW_DIRECTORY_SECONDS");
  if (uid < kFirst) return NSS_STATUS_NOTFOUND;
  sleep(seconds == NULL ? 0 : (unsigned)atoi(seconds));
  if (size < kLongest) {
    *error = ERANGE;
    return NSS_STATUS_TRYAGAIN;
  }
  snprintf(buffer, size, "user%u", uid);
  *entry = (struct passwd){.pw_name = buffer,
                           .pw_passwd = "x",
                           .pw_uid = uid,
                           .pw_gid = uid,
                           .pw_gecos = "",
                           .pw_dir = "/",
                           .pw_shell = "/bin/sh"};
  return NSS_STATUS_SUCCESS;
}
