// The images: 8x8 grey digits read from a CSV file, and their split into a training and a test part. Everything that
// can be wrong with the file is found here, before a rank connects to anything, and named by row and column.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string_view>
#include <vector>

namespace digits {

inline constexpr std::size_t kPixels = 64;   ///< 8 x 8
inline constexpr std::size_t kClasses = 10;  ///< the digits
inline constexpr int kMaxGrey = 16;          ///< the value of black in the file
/// The split is the same for every --seed, so that accuracies of different seeds compare.
inline constexpr std::uint64_t kSplitSeed = 0x5eed0fd191750000U;

/// Labelled images. Value type.
struct Dataset {
  std::vector<float> pixels;         ///< float[size()][kPixels], scaled to 0..1
  std::vector<std::uint8_t> labels;  ///< 0..9

  [[nodiscard]] std::size_t size() const noexcept { return labels.size(); }
  [[nodiscard]] std::span<const float, kPixels> image(std::size_t row) const noexcept {
    return std::span<const float, kPixels>(pixels.data() + row * kPixels, kPixels);
  }
};

struct Split {
  Dataset train;
  Dataset test;
};

/// Reads `text`: rows of 64 pixels 0..16 and a label 0..9, separated by commas, ended by LF or CRLF; a byte-order mark
/// in front and empty lines at the end are let pass. `name` is what messages call the text. Errors: weft::Error
/// invalid_argument, `<name>: row R, column C: ...`, both counted from 1.
[[nodiscard]] Dataset parse_dataset(std::string_view text, std::string_view name);

/// Reads a file as parse_dataset does.
/// Errors: weft::Error invalid_argument; `native` is the errno where the file cannot be read.
[[nodiscard]] Dataset load_dataset(const std::filesystem::path& file);

/// Shuffles by `seed` and gives the first 4/5 (rounded down) to `train`, the rest to `test`.
/// Errors: weft::Error invalid_argument with fewer than 5 rows, when one part would be empty.
[[nodiscard]] Split split_dataset(const Dataset& all, std::uint64_t seed = kSplitSeed);

}  // namespace digits
