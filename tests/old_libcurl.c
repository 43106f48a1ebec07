/* A libcurl that does not know the options whose numbers are in the file that OLD_LIBCURL_UNKNOWN names, one
   a line, as an older one would not; all else is done by the one at REAL_LIBCURL, a path given when this is
   compiled. */

#include <dlfcn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

enum { kUnknownOption = 48 }; /* CURLE_UNKNOWN_OPTION */

static void* real(const char* name) {
  static void* library;
  if (library == NULL) library = dlopen(REAL_LIBCURL, RTLD_NOW | RTLD_LOCAL);
  return dlsym(library, name);
}

#define FORWARD(type, name, parameters, arguments)     \
  type name parameters {                               \
    return ((type(*) parameters)real(#name))arguments; \
  }

FORWARD(int, curl_global_init, (long flags), (flags))
FORWARD(void*, curl_easy_init, (void), ())
FORWARD(void, curl_easy_reset, (void* handle), (handle))
FORWARD(int, curl_easy_perform, (void* handle), (handle))
FORWARD(void, curl_easy_cleanup, (void* handle), (handle))
FORWARD(const char*, curl_easy_strerror, (int code), (code))
FORWARD(const void*, curl_easy_option_by_id, (int option), (option))
FORWARD(void*, curl_slist_append, (void* list, const char* text), (list, text))
FORWARD(void, curl_slist_free_all, (void* list), (list))

int curl_easy_getinfo(void* handle, int info, ...) {
  va_list arguments;
  va_start(arguments, info);
  void* value = va_arg(arguments, void*);
  va_end(arguments);
  return ((int (*)(void*, int, ...))real("curl_easy_getinfo"))(handle, info, value);
}

static int is_unknown(int option) {
  FILE* file = fopen(getenv("OLD_LIBCURL_UNKNOWN"), "r");
  int number = 0, found = 0;
  while (file != NULL && fscanf(file, "%d", &number) == 1) found = found || number == option;
  if (file != NULL) fclose(file);
  return found;
}

int curl_easy_setopt(void* handle, int option, ...) {
  va_list arguments;
  va_start(arguments, option);
  void* value = va_arg(arguments, void*);
  va_end(arguments);
  if (is_unknown(option)) return kUnknownOption;
  return ((int (*)(void*, int, ...))real("curl_easy_setopt"))(handle, option, value);
}
