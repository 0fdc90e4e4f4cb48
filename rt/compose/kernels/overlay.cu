// What is painted over the finished picture: the time code of rt/timecode.py, and a badge that says that the picture is not as it was filmed.
#include "sources.cuh"

// `cells`: u8 [count], 0 or 1, over the whole width of the last `rows` rows.
extern "C" __global__ void paint_timecode(u8* frame, int width, int height, int pitch, const u8* cells, int count, int rows) {
  PIXEL;
  if (x >= width || y >= rows) return;
  u8* pixel = Picture{frame, width, height, pitch}.at(x, height - rows + y);
  for (int c = 0; c < 3; c++) pixel[c] = 255 * cells[(size_t)x * count / width];
}

// Lays `badge`, u8 [rows, columns, 4] B, G, R, alpha, at (left, top); what lies outside of the frame is left out. `opacity`: 0 … 256.
extern "C" __global__ void paint_badge(u8* frame, int width, int height, int pitch, const u8* badge, int columns, int rows, int left, int top,
                                       int opacity) {
  PIXEL;
  if (x >= columns || y >= rows || left + x < 0 || top + y < 0 || left + x >= width || top + y >= height) return;
  const u8* own = badge + ((size_t)y * columns + x) * 4;
  blend(Picture{frame, width, height, pitch}.at(left + x, top + y), Colour{{own[0], own[1], own[2]}, own[3]}, opacity);
}
