// The way back onto the frame: a network's picture or a patch, in one pass over its box and nothing else.
// `limit`: u8 [height, width] of the box, what masks leave to be seen; may be null. `fit`: see Fit; may be null.
#include "sources.cuh"

// Inverse warp, soft mask and blend at once.
extern "C" __global__ void paste_planes(u8* frame, int width, int height, int pitch, const Face* faces, const float* planes, int side,
                                        int boost, const u8* soft, const float* shown, const u8* limit, const float* fit) {
  const Face& face = faces[0];
  Picture picture{frame, width, height, pitch};
  CropSource source{{planes, side, boost}, soft, shown};
  FOR_REGION(x, y, face.width, face.height) {
    Colour colour = source.at(face, x, y);
    if (limit) colour.alpha = min(colour.alpha, (int)limit[(size_t)y * face.width + x]);
    for (int c = 0; c < 3; c++) colour.c[c] = Fit{fit}.of(colour.c[c], c);
    blend(picture.at(face.left + x, face.top + y), colour, face.opacity);
  }
}

// The same without the blend: pixels u8 [height, width, 3] and alpha u8 [height, width] of the box.
extern "C" __global__ void planes_to_patch(const Face* faces, const float* planes, int side, int boost, const u8* soft,
                                           const float* shown, const u8* limit, u8* pixels, u8* alpha) {
  const Face& face = faces[0];
  CropSource source{{planes, side, boost}, soft, shown};
  FOR_REGION(x, y, face.width, face.height) {
    Colour colour = source.at(face, x, y);
    size_t place = (size_t)y * face.width + x;
    for (int c = 0; c < 3; c++) pixels[3 * place + c] = (u8)colour.c[c];
    alpha[place] = (u8)(limit ? min(colour.alpha, (int)limit[place]) : colour.alpha);
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
