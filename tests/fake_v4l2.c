// An LD_PRELOAD stand-in for v4l2loopback output devices: pyvirtualcam's own v4l2 backend opens /dev/video0, and what the
// driver would get lands in files. Needs no kernel module, no root, no device node.
//
// Build:  gcc -O2 -shared -fPIC -o fake_v4l2.so fake_v4l2.c -ldl
// Use:    FFRT_FAKE_V4L2=$PWD/cam LD_PRELOAD=$PWD/fake_v4l2.so python app.py
//         -> cam0.raw: every frame written to /dev/video0, one after the other; cam0.fmt: width height fourcc frame-size colorspace quantization
// FFRT_FAKE_V4L2_N is the number of devices (default 1). Reading back, select() and streaming I/O are not imitated.
// fake_v4l2.py, next to this file, builds it and runs any command under it.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/videodev2.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MAX_FD 4096
static int device_of[MAX_FD];  // device number + 1, 0 for any other file

static const char *prefix(void) { return getenv("FFRT_FAKE_V4L2"); }

static int device_number(const char *path) {
  int number;
  char rest;
  return prefix() && sscanf(path, "/dev/video%d%c", &number, &rest) == 1 ? number : -1;
}

static void *real(const char *name) { return dlsym(RTLD_NEXT, name); }

static int open_fake(int number) {
  const char *count = getenv("FFRT_FAKE_V4L2_N");
  if (number >= (count ? atoi(count) : 1)) {
    errno = ENOENT;
    return -1;
  }
  char path[4096];
  snprintf(path, sizeof path, "%s%d.raw", prefix(), number);
  int (*real_open)(const char *, int, ...) = real("open");
  int fd = real_open(path, O_RDWR | O_CREAT | O_APPEND, 0644);
  if (fd >= MAX_FD) {
    close(fd);
    errno = EMFILE;
    return -1;
  }
  if (fd >= 0) device_of[fd] = number + 1;
  return fd;
}

#define DEFINE_OPEN(name)                                \
  int name(const char *path, int flags, ...) {           \
    int number = device_number(path);                    \
    if (number >= 0) return open_fake(number);           \
    mode_t mode = 0;                                     \
    if (flags & (O_CREAT | O_TMPFILE)) {                 \
      va_list arguments;                                 \
      va_start(arguments, flags);                        \
      mode = va_arg(arguments, mode_t);                  \
      va_end(arguments);                                 \
    }                                                    \
    int (*real_open)(const char *, int, ...) = real(#name); \
    return real_open(path, flags, mode);                 \
  }
DEFINE_OPEN(open)
DEFINE_OPEN(open64)

int close(int fd) {
  int (*real_close)(int) = real("close");
  if (fd >= 0 && fd < MAX_FD) device_of[fd] = 0;
  return real_close(fd);
}

static void write_format(int number, const struct v4l2_pix_format *format) {
  char path[4096];
  snprintf(path, sizeof path, "%s%d.fmt", prefix(), number);
  FILE *file = fopen(path, "w");
  if (!file) return;
  fprintf(file, "%u %u %.4s %u %u %u\n", format->width, format->height, (const char *)&format->pixelformat, format->sizeimage,
          format->colorspace, format->quantization);
  fclose(file);
}

int ioctl(int fd, unsigned long request, ...) {
  va_list arguments;
  va_start(arguments, request);
  void *argument = va_arg(arguments, void *);
  va_end(arguments);
  if (fd < 0 || fd >= MAX_FD || !device_of[fd]) {
    int (*real_ioctl)(int, unsigned long, ...) = real("ioctl");
    return real_ioctl(fd, request, argument);
  }
  int number = device_of[fd] - 1;
  switch (request) {
    case VIDIOC_QUERYCAP: {
      struct v4l2_capability *capability = argument;
      memset(capability, 0, sizeof *capability);
      strcpy((char *)capability->driver, "v4l2 loopback");  // pyvirtualcam takes only devices of this driver
      strcpy((char *)capability->card, "ffrt fake loopback");
      snprintf((char *)capability->bus_info, sizeof capability->bus_info, "platform:v4l2loopback-%03u", number % 1000u);
      capability->version = 0x60000;
      capability->device_caps = V4L2_CAP_VIDEO_OUTPUT | V4L2_CAP_READWRITE | V4L2_CAP_STREAMING;
      capability->capabilities = capability->device_caps | V4L2_CAP_DEVICE_CAPS;
      return 0;
    }
    case VIDIOC_S_FMT:
      write_format(number, &((struct v4l2_format *)argument)->fmt.pix);
      return 0;
    case VIDIOC_G_FMT:
    case VIDIOC_S_PARM:
    case VIDIOC_G_PARM:
    case VIDIOC_STREAMON:
    case VIDIOC_STREAMOFF:
      return 0;
    default:
      errno = ENOTTY;
      return -1;
  }
}
