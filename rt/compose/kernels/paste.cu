// The way back onto the frame: a network's picture or a patch, in one pass over its box and nothing else.
// `limit`, `segments`, `shapes`: what masks leave to be seen, see Limit. `fit`: see Fit; may be null.
#include "shapes.cuh"

// Inverse warp, soft mask and blend at once.
extern "C" __global__ void paste_planes(u8* frame, int width, int height, int pitch, const Face* faces, const float* planes, int side,
                                        int boost, const u8* soft, const float* shown, const u8* limit,
                                        const float* segments, const float* shapes, const float* fit) {
  const Face& face = faces[0];
  Picture picture{frame, width, height, pitch};
  CropSource source{{planes, side, boost}, soft, shown};
  FOR_REGION(x, y, face.width, face.height) {
    Colour colour = source.at(face, x, y);
    if (!colour.alpha) continue;
    colour.alpha = min(colour.alpha, Limit{limit, segments, shapes}.of(face, x, y));
    for (int c = 0; c < 3; c++) colour.c[c] = Fit{fit}.of(colour.c[c], c);
    blend(picture.at(face.left + x, face.top + y), colour, face.opacity);
  }
}

// The same without the blend: pixels u8 [height, width, 3] and alpha u8 [height, width] of the box.
extern "C" __global__ void planes_to_patch(const Face* faces, const float* planes, int side, int boost, const u8* soft,
                                           const float* shown, const u8* limit, const float* segments, const float* shapes, u8* pixels,
                                           u8* alpha) {
  const Face& face = faces[0];
  CropSource source{{planes, side, boost}, soft, shown};
  FOR_REGION(x, y, face.width, face.height) {
    Colour colour = source.at(face, x, y);
    size_t place = (size_t)y * face.width + x;
    for (int c = 0; c < 3; c++) pixels[3 * place + c] = (u8)colour.c[c];
    alpha[place] = (u8)(colour.alpha ? min(colour.alpha, Limit{limit, segments, shapes}.of(face, x, y)) : 0);
  }
}

// Lays a patch. `membrane`: u8 [rows, columns, 3] of its Cells, 128 + levels to be added to its pixels (seam.cu); may be null.
extern "C" __global__ void lay_patch(u8* frame, int width, int height, int pitch, const Face* faces, const u8* pixels, const u8* alpha,
                                     const u8* limit, const float* fit, const u8* membrane) {
  const Face& face = faces[0];
  Picture picture{frame, width, height, pitch};
  Cells grid(face);
  float across = (float)grid.columns / face.width, down = (float)grid.rows / face.height;
  FOR_REGION(x, y, face.width, face.height) {
    size_t place = (size_t)y * face.width + x;
    Colour colour = {{pixels[3 * place], pixels[3 * place + 1], pixels[3 * place + 2]}, alpha[place]};
    if (limit) colour.alpha = min(colour.alpha, (int)limit[place]);
    if (!colour.alpha) continue;
    for (int c = 0; c < 3; c++) {
      colour.c[c] = Fit{fit}.of(colour.c[c], c);
      if (!membrane) continue;
      float2 cell = make_float2((x + 0.5f) * across - 0.5f, (y + 0.5f) * down - 0.5f);
      colour.c[c] = clamped(colour.c[c] + level(bilinear_u8(membrane, grid.columns, grid.rows, cell, 3, c)) - 128, 0, 255);
    }
    blend(picture.at(face.left + x, face.top + y), colour, face.opacity);
  }
}

// What was laid is sharpened, as far as its alpha covers (rt/compose/host.py's sharpen): an unsharp mask of the box, rows first. `finish`: radius,
// amount as 256ths of the detail, weights from the middle on as whole 256ths. All sums are whole numbers below 2^24, so that float has them, and
// OpenCV's, to the bit. `rows`: float [height, width, 3].
__device__ int mirrored(int place, int count) {  // cv2's BORDER_REFLECT_101
  while (place < 0 || place >= count) {
    if (count == 1) return 0;
    place = place < 0 ? -place : 2 * (count - 1) - place;
  }
  return place;
}

extern "C" __global__ void sharpen_rows(const u8* frame, int width, int height, int pitch, const Face* faces, const float* finish,
                                        float* rows) {
  const Face& face = faces[0];
  Picture picture{(u8*)frame, width, height, pitch};
  int radius = (int)finish[0];
  FOR_REGION(x, y, face.width, face.height) {
    float sum[3] = {0, 0, 0};
    for (int i = -radius; i <= radius; i++) {
      const u8* pixel = picture.at(face.left + mirrored(x + i, face.width), face.top + y);
      for (int c = 0; c < 3; c++) sum[c] += finish[2 + abs(i)] * pixel[c];
    }
    for (int c = 0; c < 3; c++) rows[3 * ((size_t)y * face.width + x) + c] = sum[c];
  }
}
extern "C" __global__ void sharpen_columns(u8* frame, int width, int height, int pitch, const Face* faces, const float* finish,
                                           const float* rows, const u8* alpha) {
  const Face& face = faces[0];
  Picture picture{frame, width, height, pitch};
  int radius = (int)finish[0], amount = (int)finish[1];
  FOR_REGION(x, y, face.width, face.height) {
    long long weight = (long long)alpha[(size_t)y * face.width + x] * amount;
    if (!weight) continue;
    u8* pixel = picture.at(face.left + x, face.top + y);
    for (int c = 0; c < 3; c++) {
      float soft = 0;
      for (int j = -radius; j <= radius; j++) soft += finish[2 + abs(j)] * rows[3 * ((size_t)mirrored(y + j, face.height) * face.width + x) + c];
      int blurred = (int)(soft + 32768) >> 16;
      long long detail = (pixel[c] - blurred) * weight + 32640;
      pixel[c] = (u8)clamped(pixel[c] + (int)(detail >= 0 ? detail / 65280 : -((65279 - detail) / 65280)), 0, 255);  // rounded down, as Python
    }
  }
}
