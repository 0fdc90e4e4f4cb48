// The way back onto the frame: a network's picture or a patch, over its box and nothing else.
#include "patch.cuh"

// A network's picture as far as masks leave it.
struct Pasted {
  CropSource source;
  Limit limit;
  __device__ Colour at(const Face& face, int x, int y) const {
    Colour colour = source.at(face, x, y);
    if (colour.alpha) colour.alpha = min(colour.alpha, limit.of(face, x, y));
    return colour;
  }
};

// A patch that was sent.
struct Sent {
  const u8 *pixels, *alpha;
  Limit limit;
  __device__ Colour at(const Face& face, int x, int y) const {
    size_t place = (size_t)y * face.width + x;
    return {{pixels[3 * place], pixels[3 * place + 1], pixels[3 * place + 2]}, min((int)alpha[place], limit.of(face, x, y))};
  }
};

// Inverse warp, soft mask and blend at once. `limit` … `table`: see Limit.
extern "C" __global__ void paste_planes(u8* frame, int width, int height, int pitch, const Face* faces, const float* planes, int side,
                                        int boost, const u8* soft, const float* shown, const u8* limit, const float* segments,
                                        const float* shapes, const u8* masks, const float* table) {
  const Face& face = faces[0];
  Picture picture{frame, width, height, pitch};
  Pasted source{{{planes, side, boost}, soft, shown}, {limit, segments, shapes, masks, table}};
  FOR_REGION(x, y, face.width, face.height) blend(picture.at(face.left + x, face.top + y), source.at(face, x, y), face.opacity);
}

// The same without the blend: a patch, see make_patch.
extern "C" __global__ void planes_to_patch(const u8* frame, int width, int height, int pitch, const Face* faces, const float* planes, int side,
                                           int boost, const u8* soft, const float* shown, const u8* limit, const float* segments,
                                           const float* shapes, const u8* masks, const float* table, u8* pixels, u8* alpha, u8* cells) {
  __shared__ CellSums sums;
  Pasted source{{{planes, side, boost}, soft, shown}, {limit, segments, shapes, masks, table}};
  make_patch(Picture{(u8*)frame, width, height, pitch}, faces[0], source, pixels, alpha, cells, sums);
}

// A patch that was sent, in place: as far as masks leave it, and its cells.
extern "C" __global__ void limit_patch(const u8* frame, int width, int height, int pitch, const Face* faces, const u8* limit,
                                       const float* segments, const float* shapes, const u8* masks, const float* table, u8* pixels, u8* alpha,
                                       u8* cells) {
  __shared__ CellSums sums;
  Sent source{pixels, alpha, {limit, segments, shapes, masks, table}};
  make_patch(Picture{(u8*)frame, width, height, pitch}, faces[0], source, pixels, alpha, cells, sums);
}

// What is added to a patch, u8 [rows, columns, 3] of its Cells, 128 + levels, between whose middles it goes over: in whole 256ths of a cell, as
// rt/compose/host.py's _add_membrane does it. May be null.
struct Membrane {
  const u8* levels;
  Cells grid;
  int width, height;

  __device__ static int place(int pixel, int count, int cells) {  // 256ths of a cell
    return clamped((2 * pixel + 1) * cells * 128 / count - 128, 0, 256 * (cells - 1));
  }
  __device__ int at(int x, int y, int c) const {
    int column = place(x, width, grid.columns), row = place(y, height, grid.rows), right = column & 255, down = row & 255;
    const u8* first = levels + ((row >> 8) * grid.columns + (column >> 8)) * 3 + c;
    int next = column >> 8 < grid.columns - 1 ? 3 : 0, below = row >> 8 < grid.rows - 1 ? 3 * grid.columns : 0;
    int upper = first[0] * (256 - right) + first[next] * right, lower = first[below] * (256 - right) + first[below + next] * right;
    return ((upper * (256 - down) + lower * down + 32768) >> 16) - 128;
  }
};

// A patch and the frame below it.
struct Layer {
  Picture picture;
  const Face& face;
  const u8 *pixels, *alpha;
  Fit fit;
  Membrane membrane;

  __device__ Layer(u8* frame, int width, int height, int pitch, const Face& face, const u8* pixels, const u8* alpha, const float* fit,
                   const u8* membrane)
      : picture{frame, width, height, pitch}, face(face), pixels(pixels), alpha(alpha), fit{fit},
        membrane{membrane, Cells(face), face.width, face.height} {}
  // The pixel of the box as it looks once the patch is laid: B, G, R.
  __device__ void laid(int x, int y, u8* out) const {
    const u8* below = picture.at(face.left + x, face.top + y);
    for (int c = 0; c < 3; c++) out[c] = below[c];
    size_t place = (size_t)y * face.width + x;
    if (!alpha[place]) return;
    Colour colour = {{0, 0, 0}, alpha[place]};
    for (int c = 0; c < 3; c++) {
      colour.c[c] = fit.of(pixels[3 * place + c], c);
      if (membrane.levels) colour.c[c] = clamped(colour.c[c] + membrane.at(x, y, c), 0, 255);
    }
    blend(out, colour, face.opacity);
  }
};

#define LAYER Layer layer((u8*)frame, width, height, pitch, faces[0], pixels, alpha, fit, membrane)

// Lays a patch. `fit`: see Fit, may be null; `membrane`: see Membrane.
extern "C" __global__ void lay_patch(u8* frame, int width, int height, int pitch, const Face* faces, const u8* pixels, const u8* alpha,
                                     const float* fit, const u8* membrane) {
  LAYER;
  FOR_REGION(x, y, layer.face.width, layer.face.height) {
    u8 out[3];
    layer.laid(x, y, out);
    if (!alpha[(size_t)y * layer.face.width + x]) continue;
    for (int c = 0; c < 3; c++) layer.picture.at(layer.face.left + x, layer.face.top + y)[c] = out[c];
  }
}

// The same, sharpened as far as the alpha covers (rt/compose/host.py's sharpen): an unsharp mask of the box as it looks once the patch is laid, rows
// first; the frame is written at the end alone. `finish`: radius, amount as 256ths of the detail, weights from the middle on as whole 256ths. All
// sums are whole numbers below 2^24, so that float has them, and OpenCV's, to the bit. `rows`: float [height, width, 3].
#define RADIUS_MAX 32
#define ACROSS 32
#define DOWN 8

__device__ int mirrored(int place, int count) {  // cv2's BORDER_REFLECT_101
  while (place < 0 || place >= count) {
    if (count == 1) return 0;
    place = place < 0 ? -place : 2 * (count - 1) - place;
  }
  return place;
}

extern "C" __global__ void lay_rows(const u8* frame, int width, int height, int pitch, const Face* faces, const u8* pixels, const u8* alpha,
                                    const float* fit, const u8* membrane, const float* finish, float* rows) {
  __shared__ u8 laid[DOWN][ACROSS + 2 * RADIUS_MAX][3];
  LAYER;
  const Face& face = layer.face;
  int radius = (int)finish[0];
  for (int top = blockIdx.y * DOWN; top < face.height; top += gridDim.y * DOWN)
    for (int left = blockIdx.x * ACROSS; left < face.width; left += gridDim.x * ACROSS) {
      PHASE {
        int y = top + threadIdx.y;
        for (int i = threadIdx.x; y < face.height && i < ACROSS + 2 * radius; i += ACROSS)
          layer.laid(mirrored(left + i - radius, face.width), y, laid[threadIdx.y][i]);
      }
      PHASE {
        int x = left + threadIdx.x, y = top + threadIdx.y;
        if (x >= face.width || y >= face.height) continue;
        for (int c = 0; c < 3; c++) {
          float sum = 0;
          for (int i = 0; i <= 2 * radius; i++) sum += finish[2 + abs(i - radius)] * laid[threadIdx.y][threadIdx.x + i][c];
          rows[3 * ((size_t)y * face.width + x) + c] = sum;
        }
      }
    }
}

extern "C" __global__ void lay_columns(u8* frame, int width, int height, int pitch, const Face* faces, const u8* pixels, const u8* alpha,
                                       const float* fit, const u8* membrane, const float* finish, const float* rows) {
  LAYER;
  const Face& face = layer.face;
  int radius = (int)finish[0], amount = (int)finish[1];
  FOR_REGION(x, y, face.width, face.height) {
    int covered = alpha[(size_t)y * face.width + x];
    if (!covered) continue;
    u8* pixel = layer.picture.at(face.left + x, face.top + y);
    u8 seen[3];
    layer.laid(x, y, seen);
    for (int c = 0; c < 3; c++) {
      float soft = 0;
      for (int j = -radius; j <= radius; j++) soft += finish[2 + abs(j)] * rows[3 * ((size_t)mirrored(y + j, face.height) * face.width + x) + c];
      int blurred = (int)(soft + 32768) >> 16;
      long long detail = (long long)(seen[c] - blurred) * covered * amount + 32640;
      pixel[c] = (u8)clamped(seen[c] + (int)(detail >= 0 ? detail / 65280 : -((65279 - detail) / 65280)), 0, 255);  // rounded down, as Python
    }
  }
}
