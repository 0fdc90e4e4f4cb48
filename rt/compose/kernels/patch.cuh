// A patch of a face's box, made where it is to be laid: pixels u8 [height, width, 3] and alpha u8 [height, width]; and what is to be known of it
// and the frame below before its seam and its colours can be matched.
#pragma once
#include "shapes.cuh"

#define CELL_THREADS 32

struct CellSums {
  int of[CELL_THREADS][8];  // as in a cell, and how many pixels are seen
  int seen;
};

// Phases of a block of 32 threads, one for each of 48 x 48 Cells, of which those that are none end at once. It makes the pixels of its cell; the
// last ones of a row and of a column also those that are left over up to the border. `source.at(face, x, y)`: a Colour. `sums`: shared memory.
// `cells`: u8 [rows, columns, 7], means of a cell: B, G, R of the frame and of the patch where the patch is seen, and alpha of all; may be null.
template <class Source>
__device__ void make_patch(const Picture& picture, const Face& face, const Source& source, u8* pixels, u8* alpha, u8* cells, CellSums& sums) {
  Cells grid(face);
  if ((int)blockIdx.x >= grid.columns || (int)blockIdx.y >= grid.rows) return;
  int across = min(grid.side, face.width), down = min(grid.side, face.height);
  int left = blockIdx.x * grid.side, top = blockIdx.y * grid.side;
  int columns = ((int)blockIdx.x == grid.columns - 1 ? face.width - left : across);
  int rows = ((int)blockIdx.y == grid.rows - 1 ? face.height - top : down);
  PHASE {
    int* sum = sums.of[threadIdx.x];
    for (int k = 0; k < 8; k++) sum[k] = 0;
    for (int i = threadIdx.x; i < columns * rows; i += CELL_THREADS) {
      int x = left + i % columns, y = top + i / columns;
      size_t place = (size_t)y * face.width + x;
      Colour colour = source.at(face, x, y);
      for (int c = 0; c < 3; c++) pixels[3 * place + c] = (u8)colour.c[c];
      alpha[place] = (u8)colour.alpha;
      if (!cells || !colour.alpha || i % columns >= across || i / columns >= down) continue;
      const u8* below = picture.at(face.left + x, face.top + y);
      for (int c = 0; c < 3; c++) sum[c] += below[c], sum[3 + c] += colour.c[c];
      sum[6] += colour.alpha, sum[7]++;
    }
  }
  if (!cells) return;
  PHASE {
    if (threadIdx.x == 7) {
      sums.seen = 0;
      for (int i = 0; i < CELL_THREADS; i++) sums.seen += sums.of[i][7];
    }
  }
  PHASE {
    if (threadIdx.x >= 7) continue;
    int total = 0, count = threadIdx.x == 6 ? across * down : max(1, sums.seen);
    for (int i = 0; i < CELL_THREADS; i++) total += sums.of[i][threadIdx.x];
    cells[((size_t)blockIdx.y * grid.columns + blockIdx.x) * 7 + threadIdx.x] = (u8)((2 * total + count) / (2 * count));
  }
}
