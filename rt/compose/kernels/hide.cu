// A face that is not to be seen: its region reduced to a handful of cells, and only these are shown, smoothed, within its oval.
// rt/compose/host.py's blur_face.
#include "shapes.cuh"

// Mean of each cell of a box by the share of each pixel that lies in it. One block of 256 threads a cell; `cells`: u8 [rows, columns, 3].
extern "C" __global__ void hide_cells(const u8* frame, int width, int height, int pitch, const Face* faces, u8* cells) {
  __shared__ float sums[256][3];
  const Face& face = faces[0];
  Picture picture{(u8*)frame, width, height, pitch};
  float across = (float)face.width / gridDim.x, down = (float)face.height / gridDim.y;
  float left = blockIdx.x * across, top = blockIdx.y * down, right = left + across, bottom = top + down;
  int first = (int)left, above = (int)top;
  int columns = min((int)ceilf(right), face.width) - first, rows = min((int)ceilf(bottom), face.height) - above;
  PHASE {
    float sum[3] = {0, 0, 0};
    for (int i = threadIdx.x; i < columns * rows; i += 256) {
      int x = first + i % columns, y = above + i / columns;
      float share = (fminf(x + 1.0f, right) - fmaxf((float)x, left)) * (fminf(y + 1.0f, bottom) - fmaxf((float)y, top));
      const u8* pixel = picture.at(face.left + x, face.top + y);
      for (int c = 0; c < 3; c++) sum[c] += share * pixel[c];
    }
    for (int c = 0; c < 3; c++) sums[threadIdx.x][c] = sum[c];
  }
  for (int half = 128; half > 0; half /= 2) PHASE {
      if ((int)threadIdx.x < half)
        for (int c = 0; c < 3; c++) sums[threadIdx.x][c] += sums[threadIdx.x + half][c];
    }
  PHASE {
    if (threadIdx.x < 3) cells[((size_t)blockIdx.y * gridDim.x + blockIdx.x) * 3 + threadIdx.x] = level(sums[0][threadIdx.x] / (across * down));
  }
}

// Lays the cells over the face's oval: `segments` float [count, 6] in pixels of the box, see shapes.cuh.
extern "C" __global__ void hide_face(u8* frame, int width, int height, int pitch, const Face* faces, const u8* cells, int columns, int rows,
                                     const float* segments, int count, const float* ramp) {
  const Face& face = faces[0];
  Picture picture{frame, width, height, pitch};
  float across = (float)columns / face.width, down = (float)rows / face.height;
  FOR_REGION(x, y, face.width, face.height) {
    Colour colour;
    colour.alpha = shape_level(segments, count, ramp, x, y);
    if (!colour.alpha) continue;
    float2 cell = make_float2((x + 0.5f) * across - 0.5f, (y + 0.5f) * down - 0.5f);
    for (int c = 0; c < 3; c++) colour.c[c] = level(bilinear_u8(cells, columns, rows, cell, 3, c));
    blend(picture.at(face.left + x, face.top + y), colour, face.opacity);
  }
}
