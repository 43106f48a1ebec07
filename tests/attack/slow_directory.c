/* A user database whose directory service takes its time: after SLOW_DIRECTORY_SECONDS it knows every uid
   from 70000 on. Named "slow" in nsswitch.conf. */

#include <errno.h>
#include <nss.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { kFirst = 70000, kLongest = 64 };

/* Where all texts of an answer belong. */
static char* put(char** room, const char* text) {
  char* begin = *room;
  *room = stpcpy(begin, text) + 1;
  return begin;
}

enum nss_status _nss_slow_getpwuid_r(uid_t uid, struct passwd* entry, char* buffer, size_t size, int* error) {
  const char* seconds = getenv("SLOW_DIRECTORY_SECONDS");
  if (uid < kFirst) return NSS_STATUS_NOTFOUND;
  sleep(seconds == NULL ? 0 : (unsigned)atoi(seconds));
  if (size < kLongest) {
    *error = ERANGE;
    return NSS_STATUS_TRYAGAIN;
  }
  char name[kLongest / 2];
  snprintf(name, sizeof name, "user%u", uid);
  *entry = (struct passwd){.pw_name = put(&buffer, name),
                           .pw_passwd = put(&buffer, "x"),
                           .pw_uid = uid,
                           .pw_gid = uid,
                           .pw_gecos = put(&buffer, ""),
                           .pw_dir = put(&buffer, "/"),
                           .pw_shell = put(&buffer, "/bin/sh")};
  return NSS_STATUS_SUCCESS;
}
