// What is painted over the finished picture: the time code of rt/timecode.py. The disclosure badge is a patch (paste.cu).
#include "pixels.cuh"

// `cells`: u8 [count], 0 or 1, over the whole width of the last `rows` rows.
extern "C" __global__ void paint_timecode(u8* frame, int width, int height, int pitch, const u8* cells, int count, int rows) {
  PIXEL;
  if (x >= width || y >= rows) return;
  u8* pixel = Picture{frame, width, height, pitch}.at(x, height - rows + y);
  for (int c = 0; c < 3; c++) pixel[c] = 255 * cells[(size_t)x * count / width];
}
