// A program that was written for WASI alone. What it does is its first argument.
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static int failed(const char *what) {
  int code = errno;
  fprintf(stderr, "%s: errno %d\n", what, code);
  return code;
}

static int copy(int from, int to) {
  char buf[4096];
  for (;;) {
    ssize_t n = read(from, buf, sizeof buf);
    if (n < 0) return failed("read");
    if (n == 0) return 0;
    for (ssize_t at = 0; at < n;) {
      ssize_t w = write(to, buf + at, n - at);
      if (w < 0) return failed("write");
      at += w;
    }
  }
}

int main(int argc, char **argv) {
  const char *what = argc > 1 ? argv[1] : "";
  const char *name = argc > 2 ? argv[2] : "";
  extern char **environ;
  if (!strcmp(what, "upper")) {
    for (int c; (c = getchar()) != EOF;) putchar(toupper(c));
    return 0;
  }
  if (!strcmp(what, "args")) {
    printf("[");
    for (int i = 0; i < argc; i++) printf("%s\"%s\"", i ? "," : "", argv[i]);
    printf("]");
    return environ && *environ ? 9 : 0;
  }
  if (!strcmp(what, "exit")) {
    printf("1");
    fflush(stdout);
    exit(atoi(name));
  }
  if (!strcmp(what, "abort")) abort();
  if (!strcmp(what, "sleep")) return sleep(3600), 0;
  if (!strcmp(what, "spin")) for (volatile int i = 0;;) i++;
  if (!strcmp(what, "count")) {
    static int n;
    printf("%d", ++n);
    return 0;
  }
  if (!strcmp(what, "cat")) {
    int fd = open(name, O_RDONLY);
    return fd < 0 ? failed("open") : copy(fd, 1);
  }
  if (!strcmp(what, "put") || !strcmp(what, "append") || !strcmp(what, "new") || !strcmp(what, "left")) {
    int flags = O_WRONLY | O_CREAT;
    if (!strcmp(what, "append")) flags |= O_APPEND;
    else if (!strcmp(what, "new")) flags |= O_EXCL;
    else flags |= O_TRUNC;
    int fd = open(name, flags, 0600);
    if (fd < 0) return failed("open");
    int code = copy(0, fd);
    if (strcmp(what, "left") && close(fd) < 0) return failed("close");
    if (!code) printf("true");
    return code;
  }
  if (!strcmp(what, "ls")) {
    DIR *d = opendir(name);
    if (!d) return failed("opendir");
    printf("[");
    int n = 0;
    for (struct dirent *e; (e = readdir(d));)
      if (strcmp(e->d_name, ".") && strcmp(e->d_name, "..")) printf("%s\"%s%s\"", n++ ? "," : "", e->d_name, e->d_type == DT_DIR ? "/" : "");
    printf("]");
    return closedir(d);
  }
  if (!strcmp(what, "stat")) {
    struct stat s;
    if (stat(name, &s) < 0) return failed("stat");
    printf("{\"size\":%lld,\"dir\":%s}", (long long)s.st_size, S_ISDIR(s.st_mode) ? "true" : "false");
    return 0;
  }
  int r = -1;
  if (!strcmp(what, "rm")) r = unlink(name);
  if (!strcmp(what, "rmdir")) r = rmdir(name);
  if (!strcmp(what, "mkdir")) r = mkdir(name, 0700);
  if (!strcmp(what, "mv")) r = rename(name, argc > 3 ? argv[3] : "");
  if (!strcmp(what, "ln")) r = link(name, argc > 3 ? argv[3] : "");
  if (!strcmp(what, "symlink")) r = symlink(name, argc > 3 ? argv[3] : "");
  if (r < 0) return failed(what);
  printf("true");
  return 0;
}
