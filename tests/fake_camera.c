// An LD_PRELOAD stand-in for webcams: OpenCV's V4L2 backend and our own ioctls open files of one folder as if they were devices.
// Needs no kernel module, no root, no device node.
//
// Build:  gcc -O2 -shared -fPIC -o fake_camera.so fake_camera.c -ldl
// Use:    mkdir dev; touch dev/video0; FFRT_FAKE_CAMERAS=$PWD/dev LD_PRELOAD=$PWD/fake_camera.so python app.py
//
// A file that is removed is a cable that is pulled out: whoever has it open gets ENODEV from then on. One that is made anew is another
// device node. Pictures are YUYV, 640x480 or 320x240, 30 a second, all of one grey: 60 + 40 * N of videoN. While a file dev/videoN.dark is
// there they are black. A second program that wants to stream gets EBUSY.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/videodev2.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define MAX_FD 1024
#define BUFFERS 4

struct camera {
  int used, number, streaming, width, height;
  unsigned next, queued[BUFFERS], ahead;
  char path[PATH_MAX];
};
static struct camera cameras[MAX_FD];

static const unsigned sizes[][2] = {{640, 480}, {320, 240}};

static void *real(const char *name) { return dlsym(RTLD_NEXT, name); }

static int number_of(const char *path, char *place) {
  const char *folder = getenv("FFRT_FAKE_CAMERAS");
  char whole[PATH_MAX];
  int number, end = 0;
  if (!folder || !path || !realpath(path, place) || !realpath(folder, whole)) return -1;
  size_t length = strlen(whole);
  if (strncmp(place, whole, length) || sscanf(place + length, "/video%d%n", &number, &end) != 1 || place[length + end]) return -1;
  return number;
}

static int opened(int fd, int number, const char *place) {
  if (fd < 0 || fd >= MAX_FD) return fd;
  struct camera *camera = &cameras[fd];
  memset(camera, 0, sizeof *camera);
  camera->used = 1, camera->number = number, camera->width = 640, camera->height = 480;
  strcpy(camera->path, place);
  return fd;
}

#define DEFINE_OPEN(name)                                     \
  int name(const char *path, int flags, ...) {                \
    mode_t mode = 0;                                          \
    if (flags & (O_CREAT | O_TMPFILE)) {                      \
      va_list arguments;                                      \
      va_start(arguments, flags);                             \
      mode = va_arg(arguments, mode_t);                       \
      va_end(arguments);                                      \
    }                                                         \
    int (*real_open)(const char *, int, ...) = real(#name);   \
    char place[PATH_MAX];                                     \
    int number = number_of(path, place);                      \
    int fd = real_open(path, flags, mode);                    \
    return number < 0 ? fd : opened(fd, number, place);       \
  }
DEFINE_OPEN(open)
DEFINE_OPEN(open64)

int close(int fd) {
  int (*real_close)(int) = real("close");
  if (fd >= 0 && fd < MAX_FD) cameras[fd].used = 0;
  return real_close(fd);
}

static int fail(int code) {
  errno = code;
  return -1;
}

static int is_gone(int fd) {
  struct stat facts;
  return fstat(fd, &facts) || facts.st_nlink == 0;
}

static unsigned size_of(const struct camera *camera) { return camera->width * camera->height * 2; }

static void fill_format(const struct camera *camera, struct v4l2_pix_format *pix) {
  pix->width = camera->width, pix->height = camera->height, pix->pixelformat = V4L2_PIX_FMT_YUYV;
  pix->field = V4L2_FIELD_NONE, pix->bytesperline = camera->width * 2, pix->sizeimage = size_of(camera);
}

static int choose_format(struct camera *camera, struct v4l2_pix_format *pix) {
  if (camera->streaming) return fail(EBUSY);
  camera->width = pix->width <= 320 ? 320 : 640, camera->height = pix->width <= 320 ? 240 : 480;
  fill_format(camera, pix);
  return 0;
}

static int picture(int fd, struct camera *camera, struct v4l2_buffer *buffer) {
  char dark[PATH_MAX + 8];
  struct timespec pause = {0, 33000000};
  nanosleep(&pause, NULL);
  if (is_gone(fd)) return fail(ENODEV);
  if (!camera->ahead) return fail(EAGAIN);
  unsigned index = camera->queued[0];
  memmove(camera->queued, camera->queued + 1, sizeof *camera->queued * --camera->ahead);
  snprintf(dark, sizeof dark, "%s.dark", camera->path);
  unsigned char level = access(dark, F_OK) ? 60 + 40 * camera->number : 16;
  unsigned size = size_of(camera);
  unsigned char *pixels = malloc(size);
  for (unsigned k = 0; k < size; k += 2) pixels[k] = level, pixels[k + 1] = 128;
  ssize_t written = pwrite(fd, pixels, size, (off_t)index * 640 * 480 * 2);
  free(pixels);
  if (written != (ssize_t)size) return fail(EIO);
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  buffer->index = index, buffer->bytesused = size, buffer->flags = V4L2_BUF_FLAG_TIMESTAMP_MONOTONIC;
  buffer->timestamp.tv_sec = now.tv_sec, buffer->timestamp.tv_usec = now.tv_nsec / 1000;
  buffer->sequence = camera->next++, buffer->length = 640 * 480 * 2;
  return 0;
}

static int ask(int fd, struct camera *camera, unsigned long request, void *argument) {
  if (is_gone(fd)) return fail(ENODEV);
  switch (request) {
    case VIDIOC_QUERYCAP: {
      struct v4l2_capability *capability = argument;
      memset(capability, 0, sizeof *capability);
      strcpy((char *)capability->driver, "uvcvideo");
      strcpy((char *)capability->card, "ffrt fake camera");
      strcpy((char *)capability->bus_info, "usb-fake-1");
      capability->device_caps = V4L2_CAP_VIDEO_CAPTURE | V4L2_CAP_STREAMING;
      capability->capabilities = capability->device_caps | V4L2_CAP_DEVICE_CAPS;
      return 0;
    }
    case VIDIOC_ENUM_FMT: {
      struct v4l2_fmtdesc *format = argument;
      if (format->index) return fail(EINVAL);
      format->pixelformat = V4L2_PIX_FMT_YUYV;
      return 0;
    }
    case VIDIOC_ENUM_FRAMESIZES: {
      struct v4l2_frmsizeenum *size = argument;
      if (size->index > 1) return fail(EINVAL);
      size->type = V4L2_FRMSIZE_TYPE_DISCRETE;
      size->discrete.width = sizes[size->index][0], size->discrete.height = sizes[size->index][1];
      return 0;
    }
    case VIDIOC_ENUM_FRAMEINTERVALS: {
      struct v4l2_frmivalenum *interval = argument;
      if (interval->index) return fail(EINVAL);
      interval->type = V4L2_FRMIVAL_TYPE_DISCRETE;
      interval->discrete.numerator = 1, interval->discrete.denominator = 30;
      return 0;
    }
    case VIDIOC_ENUMINPUT:
      return ((struct v4l2_input *)argument)->index ? fail(EINVAL) : 0;
    case VIDIOC_G_INPUT:
      *(int *)argument = 0;
      return 0;
    case VIDIOC_S_INPUT:
      return 0;
    case VIDIOC_G_FMT:
      fill_format(camera, &((struct v4l2_format *)argument)->fmt.pix);
      return 0;
    case VIDIOC_TRY_FMT:
    case VIDIOC_S_FMT:
      return choose_format(camera, &((struct v4l2_format *)argument)->fmt.pix);
    case VIDIOC_G_PARM:
    case VIDIOC_S_PARM: {
      struct v4l2_captureparm *capture = &((struct v4l2_streamparm *)argument)->parm.capture;
      capture->capability = V4L2_CAP_TIMEPERFRAME;
      capture->timeperframe.numerator = 1, capture->timeperframe.denominator = 30;
      return 0;
    }
    case VIDIOC_REQBUFS: {
      struct v4l2_requestbuffers *buffers = argument;
      if (!buffers->count) return camera->ahead = 0, flock(fd, LOCK_UN);
      if (flock(fd, LOCK_EX | LOCK_NB)) return fail(EBUSY);
      buffers->count = BUFFERS;
      return ftruncate(fd, (off_t)BUFFERS * 640 * 480 * 2);
    }
    case VIDIOC_QUERYBUF: {
      struct v4l2_buffer *buffer = argument;
      buffer->m.offset = buffer->index * 640 * 480 * 2, buffer->length = 640 * 480 * 2;
      return 0;
    }
    case VIDIOC_QBUF:
      if (camera->ahead < BUFFERS) camera->queued[camera->ahead++] = ((struct v4l2_buffer *)argument)->index;
      return 0;
    case VIDIOC_DQBUF:
      return picture(fd, camera, argument);
    case VIDIOC_STREAMON:
      return camera->streaming = 1, 0;
    case VIDIOC_STREAMOFF:
      return camera->streaming = 0, camera->ahead = 0, 0;
    default:
      return fail(ENOTTY);
  }
}

int ioctl(int fd, unsigned long request, ...) {
  va_list arguments;
  va_start(arguments, request);
  void *argument = va_arg(arguments, void *);
  va_end(arguments);
  if (fd >= 0 && fd < MAX_FD && cameras[fd].used) return ask(fd, &cameras[fd], request, argument);
  int (*real_ioctl)(int, unsigned long, ...) = real("ioctl");
  return real_ioctl(fd, request, argument);
}
