// The data file: what is read, how it is split, and how each fault of a file is named.
#include "dataset.hpp"

#include <gtest/gtest.h>

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include "weft/runtime/error.hpp"

namespace digits {
namespace {

std::string row_of(int pixel, int label) {
  std::string row;
  for (std::size_t i = 0; i < kPixels; ++i)
    row += std::to_string(pixel) + ",";
  return row + std::to_string(label);
}

// Replaces field `column`, counted from 1.
std::string with_field(const std::string& row, std::size_t column, const std::string& field) {
  std::size_t begin = 0;
  for (std::size_t i = 1; i < column; ++i)
    begin = row.find(',', begin) + 1;
  const std::size_t end = std::min(row.find(',', begin), row.size());
  return row.substr(0, begin) + field + row.substr(end);
}

void expect_refused(const std::string& text, const std::string& expected) {
  try {
    (void)parse_dataset(text, "some.csv");
    ADD_FAILURE() << "accepted; expected: " << expected;
  } catch (const weft::Error& error) {
    EXPECT_EQ(error.code(), weft::Errc::invalid_argument);
    EXPECT_NE(std::string(error.what()).find(expected), std::string::npos)
        << "got:      " << error.what() << "\nexpected: " << expected;
  }
}

TEST(Dataset, ReadsTheDigitsThatComeWithTheExample) {
  const Dataset all = load_dataset(WEFT_TEST_SOURCE_DIR "/examples/data/digits.csv");
  ASSERT_EQ(all.size(), 1797U);
  ASSERT_EQ(all.pixels.size(), 1797U * kPixels);
  std::array<int, kClasses> seen{};
  for (const std::uint8_t label : all.labels)
    ++seen.at(label);
  for (const int count : seen)
    EXPECT_GT(count, 170);
  for (const float pixel : all.pixels) {
    ASSERT_GE(pixel, 0.0F);
    ASSERT_LE(pixel, 1.0F);
  }
}

TEST(Dataset, ScalesPixelsToOne) {
  const Dataset all = parse_dataset(with_field(with_field(row_of(0, 9), 1, "16"), 64, "8"), "some.csv");
  ASSERT_EQ(all.size(), 1U);
  EXPECT_EQ(all.image(0)[0], 1.0F);
  EXPECT_EQ(all.image(0)[1], 0.0F);
  EXPECT_EQ(all.image(0)[63], 0.5F);
  EXPECT_EQ(all.labels[0], 9);
}

TEST(Dataset, ToleratesWindowsLineEndsAByteOrderMarkAndEmptyLinesAtTheEnd) {
  const Dataset all = parse_dataset("\xef\xbb\xbf" + row_of(1, 2) + "\r\n" + row_of(3, 4) + "\r\n\r\n\n", "some.csv");
  ASSERT_EQ(all.size(), 2U);
  EXPECT_EQ(all.labels[0], 2);
  EXPECT_EQ(all.labels[1], 4);
}

TEST(Dataset, NeedsNoLineEndAfterTheLastRow) {
  EXPECT_EQ(parse_dataset(row_of(1, 2) + "\n" + row_of(3, 4), "some.csv").size(), 2U);
}

TEST(Dataset, RefusesAnEmptyFile) {
  expect_refused("", "some.csv: the file is empty");
  expect_refused("\n\r\n", "some.csv: the file is empty");
}

TEST(Dataset, NamesTheRowAndColumnOfEveryFault) {
  const std::string good = row_of(5, 5);
  const std::string head = good + "\n" + good + "\n";
  struct Fault {
    std::string row;
    std::string expected;
  };
  const std::vector<Fault> faults = {
      {"", "row 3, column 1: the row is empty"},
      {good.substr(0, good.rfind(',')), "row 3, column 65: the row has 64 columns instead of 65"},
      {"7", "row 3, column 2: the row has 1 columns instead of 65"},
      {good + ",1", "row 3, column 66: the row has 66 columns instead of 65"},
      {good + ",", "row 3, column 66: the row has 66 columns instead of 65"},
      {with_field(good, 1, "x"), "row 3, column 1: pixel \"x\" is not a whole number"},
      {with_field(good, 12, "3.5"), "row 3, column 12: pixel \"3.5\" is not a whole number"},
      {with_field(good, 12, " 3"), "row 3, column 12: pixel \" 3\" is not a whole number"},
      {with_field(good, 12, "+3"), "row 3, column 12: pixel \"+3\" is not a whole number"},
      {with_field(good, 12, "0x3"), "row 3, column 12: pixel \"0x3\" is not a whole number"},
      {with_field(good, 12, "nan"), "row 3, column 12: pixel \"nan\" is not a whole number"},
      {with_field(good, 12, ""), "row 3, column 12: the field is empty"},
      {with_field(good, 65, ""), "row 3, column 65: the field is empty"},
      {with_field(good, 64, "17"), "row 3, column 64: pixel \"17\" is not within 0..16"},
      {with_field(good, 64, "-1"), "row 3, column 64: pixel \"-1\" is not within 0..16"},
      {with_field(good, 64, "99999999999999999999"),
       "row 3, column 64: pixel \"99999999999999999999\" is not within 0..16"},
      {with_field(good, 65, "10"), "row 3, column 65: label \"10\" is not within 0..9"},
      {with_field(good, 65, "-1"), "row 3, column 65: label \"-1\" is not within 0..9"},
      {with_field(good, 65, "seven"), "row 3, column 65: label \"seven\" is not a whole number"},
  };
  for (const Fault& fault : faults) {
    expect_refused(head + fault.row + "\n" + good + "\n", "some.csv: " + fault.expected);
    expect_refused(head + fault.row + "\r\n" + good + "\r\n", "some.csv: " + fault.expected);
  }
}

TEST(Dataset, ShowsOnlyASafePartOfAFaultyField) {
  const std::string good = row_of(5, 5);
  expect_refused(with_field(good, 2, std::string("\x1b[2J\0", 5)), "pixel \"?[2J?\"");
  expect_refused(with_field(good, 2, std::string(10000, '9')), "pixel \"999999999999999999999999...\"");
}

TEST(Dataset, NamesAFileThatCannotBeRead) {
  const auto expect_unreadable = [](const std::filesystem::path& file, int native) {
    try {
      (void)load_dataset(file);
      ADD_FAILURE() << file << " was read";
    } catch (const weft::Error& error) {
      EXPECT_EQ(error.code(), weft::Errc::invalid_argument);
      EXPECT_EQ(error.native(), native);
      EXPECT_NE(std::string(error.what()).find(file.string() + ": cannot "), std::string::npos) << error.what();
    }
  };
  expect_unreadable("/nowhere/digits.csv", ENOENT);
  expect_unreadable("/", EISDIR);
}

TEST(Dataset, NamesTheFileOfAFault) {
  const std::filesystem::path file =
      std::filesystem::path(testing::TempDir()) / ("weft_dataset_test_" + std::to_string(getpid()) + ".csv");
  std::ofstream(file) << row_of(1, 1) << "\n" << with_field(row_of(1, 1), 3, "?") << "\n";
  try {
    (void)load_dataset(file);
    ADD_FAILURE() << "accepted";
  } catch (const weft::Error& error) {
    EXPECT_EQ(std::string(error.what()), file.string() + ": row 2, column 3: pixel \"?\" is not a whole number");
  }
  std::filesystem::remove(file);
}

TEST(Split, HoldsAFifthBack) {
  const Split split = split_dataset(load_dataset(WEFT_TEST_SOURCE_DIR "/examples/data/digits.csv"));
  EXPECT_EQ(split.train.size(), 1437U);
  EXPECT_EQ(split.test.size(), 360U);
  EXPECT_EQ(split.train.pixels.size(), 1437U * kPixels);
  EXPECT_EQ(split.test.pixels.size(), 360U * kPixels);
}

TEST(Split, PutsEveryRowInOnePart) {
  Dataset all;
  for (std::size_t i = 0; i < 101; ++i) {
    all.labels.push_back(static_cast<std::uint8_t>(i % kClasses));
    all.pixels.insert(all.pixels.end(), kPixels, static_cast<float>(i));
  }
  const Split split = split_dataset(all);
  EXPECT_EQ(split.train.size(), 80U);
  EXPECT_EQ(split.test.size(), 21U);
  std::map<float, std::uint8_t> seen;
  for (const Dataset* part : {&split.train, &split.test}) {
    for (std::size_t i = 0; i < part->size(); ++i)
      seen[part->image(i)[63]] = part->labels[i];
  }
  ASSERT_EQ(seen.size(), all.size());
  for (const auto& [image, label] : seen)
    EXPECT_EQ(label, static_cast<std::size_t>(image) % kClasses);
}

TEST(Split, IsFixedByItsSeed) {
  const Dataset all = load_dataset(WEFT_TEST_SOURCE_DIR "/examples/data/digits.csv");
  EXPECT_EQ(split_dataset(all).train.pixels, split_dataset(all).train.pixels);
  EXPECT_EQ(split_dataset(all).test.labels, split_dataset(all).test.labels);
  EXPECT_NE(split_dataset(all, 1).test.pixels, split_dataset(all, 2).test.pixels);
  // The split of the shipped data, on every compiler and machine.
  const Split split = split_dataset(all);
  const std::vector<std::uint8_t> first(split.test.labels.begin(), split.test.labels.begin() + 8);
  EXPECT_EQ(first, (std::vector<std::uint8_t>{5, 2, 4, 0, 8, 6, 6, 4}));
}

TEST(Split, NeedsFiveRows) {
  Dataset all =
      parse_dataset(row_of(1, 1) + "\n" + row_of(2, 2) + "\n" + row_of(3, 3) + "\n" + row_of(4, 4), "few.csv");
  EXPECT_THROW((void)split_dataset(all), weft::Error);
  const Dataset fifth = parse_dataset(row_of(5, 5), "few.csv");
  all.labels.push_back(fifth.labels[0]);
  all.pixels.insert(all.pixels.end(), fifth.pixels.begin(), fifth.pixels.end());
  EXPECT_EQ(split_dataset(all).test.size(), 1U);
}

}  // namespace
}  // namespace digits
