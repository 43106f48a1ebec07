#include "sim/cuda/image.h"

#include <gmock/gmock.h>

namespace drover::sim::cuda {
namespace {

using testing::ElementsAre;

TEST(Image, NamesAreReadOutOfPtx) {
  Image image;
  EXPECT_EQ(
      read_image("// .entry commented(\n"
                 ".version 7.8\n.target sm_80\n.address_size 64\n"
                 "/* .entry also */\n"
                 ".visible .entry first(.param .u64 first_param_0)\n{ ld.global.u32 %r1, [%rd1]; ret; }\n"
                 ".entry second()\n{ ret; }\n"
                 ".visible .global .align 4 .b8 table[1024];\n"
                 ".global .f64 one;\n"
                 ".global .align 16 .v4 .f32 matrix[4][8] = {1, 2};\n"
                 ".extern .global .b8 elsewhere[4096];\n"
                 ".global .u32 a, b[2];\n",
                 image),
      CUDA_SUCCESS);
  EXPECT_THAT(image.kernels, ElementsAre("first", "second"));
  const auto global = [](const char* name, std::uint64_t size) {
    return testing::AllOf(testing::Field(&Image::Global::name, name),
                          testing::Field(&Image::Global::size, size));
  };
  EXPECT_THAT(image.globals, ElementsAre(global("table", 1024), global("one", 8), global("matrix", 512),
                                         global("a", 4), global("b", 8)));
}

TEST(Image, WhatIsNoPtxIsRefused) {
  Image image;
  EXPECT_EQ(read_image("\177ELF", image), CUDA_ERROR_INVALID_IMAGE);
  EXPECT_EQ(read_image("", image), CUDA_ERROR_INVALID_IMAGE);
  EXPECT_EQ(read_image("hello", image), CUDA_ERROR_INVALID_PTX);
}

TEST(Image, BrokenTextEndsSomewhere) {
  for (const char* text : {".version .global", ".version .entry", ".version /*", ".version /", ".version \"",
                           ".version .global .b8 x[", ".version .global .b8 x[99999999999999999999999]",
                           ".version .global .b8 x[4294967296][4294967296][4294967296];"}) {
    Image image;
    EXPECT_EQ(read_image(text, image), CUDA_SUCCESS) << text;
    for (const auto& global : image.globals) EXPECT_LE(global.size, std::uint64_t{1} << 46) << text;
  }
}

}  // namespace
}  // namespace drover::sim::cuda
