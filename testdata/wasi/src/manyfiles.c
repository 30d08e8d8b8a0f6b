// Holds the file calls of WASI to what POSIX programs expect of them; every line is one expectation.
// Prints the number of expectations, or the first line that was not met.
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <wasi/api.h>

static int met;
#define want(cond)                                                        \
  do {                                                                    \
    if (!(cond)) {                                                        \
      printf("\"line %d, errno %d\"", __LINE__, errno);                    \
      exit(0);                                                            \
    }                                                                     \
    met++;                                                                \
  } while (0)
#define fails(call, with) (errno = 0, (call) < 0 && errno == (with))

static int has(const char *name, const char *content) {
  char buf[256];
  int fd = open(name, O_RDONLY);
  if (fd < 0) return 0;
  ssize_t n = read(fd, buf, sizeof buf);
  close(fd);
  return n == (ssize_t)strlen(content) && !memcmp(buf, content, n);
}

static int make(const char *name, const char *content) {
  int fd = open(name, O_WRONLY | O_CREAT | O_TRUNC, 0600);
  return fd >= 0 && write(fd, content, strlen(content)) == (ssize_t)strlen(content) && !close(fd);
}

int main(void) {
  struct stat s, t;
  char buf[64];

  // What open makes, keeps and cuts.
  want(fails(open("a", O_RDONLY), ENOENT));
  want(make("a", "hello"));
  want(has("a", "hello") && has("/a", "hello") && has("./a", "hello"));
  want(fails(open("a", O_WRONLY | O_CREAT | O_EXCL, 0600), EEXIST));
  want(fails(open("a", O_RDONLY | O_DIRECTORY), ENOTDIR));
  want(fails(open("a/", O_RDONLY), ENOTDIR));
  want(fails(open("a/b", O_RDONLY), ENOTDIR));
  want(fails(open("no/such", O_WRONLY | O_CREAT, 0600), ENOENT));
  int fd = open("a", O_RDWR);
  want(fd >= 0 && write(fd, "J", 1) == 1 && lseek(fd, 0, SEEK_CUR) == 1);
  want(read(fd, buf, 9) == 4 && !memcmp(buf, "ello", 4) && read(fd, buf, 9) == 0);
  want(lseek(fd, 0, SEEK_SET) == 0 && read(fd, buf, 9) == 5 && !memcmp(buf, "Jello", 5));
  want(has("a", "Jello")); // the same program sees what it wrote before it is closed
  want(pread(fd, buf, 2, 3) == 2 && !memcmp(buf, "lo", 2) && lseek(fd, 0, SEEK_CUR) == 5);
  want(pwrite(fd, "!!", 2, 7) == 2 && fstat(fd, &s) == 0 && s.st_size == 9);
  want(fails(lseek(fd, -1, SEEK_SET), EINVAL) && lseek(fd, -2, SEEK_END) == 7);
  want(ftruncate(fd, 3) == 0 && fstat(fd, &s) == 0 && s.st_size == 3 && lseek(fd, 0, SEEK_CUR) == 7);
  want(write(fd, "x", 1) == 1 && lseek(fd, 0, SEEK_SET) == 0 && read(fd, buf, 64) == 8 && !memcmp(buf, "Jel\0\0\0\0x", 8));
  want(posix_fallocate(fd, 0, 12) == 0 && fstat(fd, &s) == 0 && s.st_size == 12);
  want(posix_fadvise(fd, 0, 1, POSIX_FADV_RANDOM) == 0);
  want(fsync(fd) == 0 && fdatasync(fd) == 0 && ftruncate(fd, 2) == 0 && close(fd) == 0);
  want(has("a", "Je"));
  want(fails(close(fd), EBADF) && fails(read(fd, buf, 1), EBADF) && fails(write(fd, buf, 1), EBADF));
  want(open("a", O_WRONLY | O_TRUNC) == fd && close(fd) == 0 && has("a", ""));

  // What a descriptor was opened for is what it is for.
  fd = open("a", O_RDONLY);
  want(fails(write(fd, "x", 1), EBADF) && close(fd) == 0);
  fd = open("a", O_WRONLY);
  want(fails(read(fd, buf, 1), EBADF) && close(fd) == 0);
  fd = open("a", O_WRONLY | O_APPEND);
  want(write(fd, "one", 3) == 3 && lseek(fd, 0, SEEK_SET) == 0 && write(fd, "two", 3) == 3 && close(fd) == 0);
  want(has("a", "onetwo"));

  // Two descriptors of one file are one file.
  int one = open("a", O_RDWR), two = open("a", O_RDONLY);
  want(one >= 0 && two >= 0 && pwrite(one, "ONE", 3, 0) == 3);
  want(read(two, buf, 64) == 6 && !memcmp(buf, "ONEtwo", 6));
  want(unlink("a") == 0 && fails(stat("a", &s), ENOENT));
  want(pread(two, buf, 64, 0) == 6 && close(one) == 0 && close(two) == 0);
  want(fails(stat("a", &s), ENOENT)); // what has no name is not written back

  // Directories.
  want(mkdir("d", 0700) == 0 && fails(mkdir("d", 0700), EEXIST) && fails(mkdir("no/such", 0700), ENOENT));
  want(make("d/f", "f") && make("d/g", "g") && mkdir("d/sub", 0700) == 0);
  want(fails(rmdir("d"), ENOTEMPTY) && fails(rmdir("d/f"), ENOTDIR) && fails(unlink("d/sub"), EISDIR));
  want(fails(open("d", O_WRONLY | O_CREAT, 0600), EISDIR) && fails(open("d", O_WRONLY | O_TRUNC), EISDIR));
  want(stat("d", &s) == 0 && S_ISDIR(s.st_mode) && stat("d/f", &t) == 0 && S_ISREG(t.st_mode) && s.st_ino != t.st_ino);
  DIR *dir = opendir("d");
  want(dir != NULL);
  const char *names[] = {".", "..", "f", "g", "sub"};
  long second = 0;
  for (int i = 0; i < 5; i++) {
    struct dirent *e = readdir(dir);
    want(e && !strcmp(e->d_name, names[i]));
    if (i == 1) second = telldir(dir);
  }
  want(readdir(dir) == NULL);
  seekdir(dir, second);
  want(!strcmp(readdir(dir)->d_name, "f"));
  rewinddir(dir);
  want(!strcmp(readdir(dir)->d_name, ".") && closedir(dir) == 0);
  int at = open("d", O_RDONLY | O_DIRECTORY);
  want(at >= 0 && fstatat(at, "f", &s, 0) == 0 && fails(read(at, buf, 1), EISDIR));
  want(fails(openat(at, "../d/f", O_RDONLY), ENOTCAPABLE)); // out of the directory, though back into it
  int f = openat(at, "sub/../f", O_RDONLY);
  want(f >= 0 && close(f) == 0 && close(at) == 0);

  // Names.
  want(rename("d/f", "d/h") == 0 && has("d/h", "f") && fails(stat("d/f", &s), ENOENT));
  want(rename("d/h", "d/g") == 0 && has("d/g", "f") && fails(stat("d/h", &s), ENOENT)); // over another
  want(rename("d/g", "d/g") == 0 && fails(rename("d/none", "d/x"), ENOENT) && fails(rename("d/g", "no/such"), ENOENT));
  want(fails(rename("d/g", "d/sub"), EISDIR) && fails(rename("d/sub", "d/other"), ENOTSUP));
  fd = open("d/g", O_RDWR);
  want(write(fd, "F", 1) == 1 && rename("d/g", "d/k") == 0 && write(fd, "!", 1) == 1 && close(fd) == 0 && has("d/k", "F!"));

  // There are no links, and no way out.
  want(fails(link("d/k", "l"), ENOTSUP) && fails(symlink("d/k", "l"), ENOTSUP) && fails(readlink("d/k", buf, 9), EINVAL));
  want(fails(readlink("none", buf, 9), ENOENT));
  want(open("../etc/passwd", O_RDONLY) < 0 && open("d/../../x", O_RDONLY) < 0 && open("/../x", O_RDONLY) < 0);
  want(__wasi_path_create_directory(3, "/absolute") == __WASI_ERRNO_NOTCAPABLE);
  want(__wasi_path_create_directory(3, "d/../../out") == __WASI_ERRNO_NOTCAPABLE);
  want(__wasi_path_create_directory(3, "") == __WASI_ERRNO_NOENT);
  want(__wasi_path_unlink_file(3, ".ecotone") != 0);

  // Descriptors.
  one = open("d/k", O_RDONLY);
  two = open("d/k", O_RDONLY);
  want(__wasi_fd_renumber(one, two) == 0 && fails(read(one, buf, 1), EBADF) && read(two, buf, 1) == 1);
  want(__wasi_fd_renumber(two, two) == 0 && __wasi_fd_renumber(two, 77) == __WASI_ERRNO_BADF && __wasi_fd_renumber(77, two) == __WASI_ERRNO_BADF);
  want(close(two) == 0 && fails(close(two), EBADF) && fails(close(1000), EBADF) && fails(close(-1), EBADF));
  want(open("d/k", O_RDONLY) == one && close(one) == 0); // the lowest that is free
  int all[300], n = 0;
  while (n < 300 && (all[n] = open("d/k", O_RDONLY)) >= 0) n++;
  want(n > 100 && n < 300 && errno == EMFILE);
  while (n > 0) close(all[--n]);
  __wasi_fdstat_t stat0;
  want(__wasi_fd_fdstat_get(0, &stat0) == 0 && stat0.fs_filetype == __WASI_FILETYPE_UNKNOWN);
  want(__wasi_fd_fdstat_set_rights(0, __WASI_RIGHTS_FD_WRITE, 0) == __WASI_ERRNO_NOTCAPABLE);
  want(fails(lseek(0, 0, SEEK_SET), ESPIPE) && fails(write(0, "x", 1), EBADF) && fails(read(1, buf, 1), EBADF));
  __wasi_prestat_t pre;
  want(__wasi_fd_prestat_get(3, &pre) == 0 && pre.u.dir.pr_name_len == 1 && __wasi_fd_prestat_get(4, &pre) == __WASI_ERRNO_BADF);
  want(__wasi_sock_shutdown(0, 1) == __WASI_ERRNO_BADF);

  // Nothing is left behind but what was meant to be.
  want(unlink("d/k") == 0 && rmdir("d/sub") == 0 && rmdir("d") == 0);
  printf("%d", met);
  return 0;
}
