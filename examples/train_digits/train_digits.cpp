// Trains a small network on handwritten digits with as many ranks as there are, and shows how much of the communication
// hides behind the backward pass.
//
//   train_digits                                            one rank
//   weftrun -n 4 train_digits --epochs 10                   four processes on this machine
//   weftrun -n 2 --order canonical --transport tcp train_digits   the same parameters as over shared memory
//
// trainer.cpp has the interesting part.
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string_view>

#include "data_file.hpp"
#include "dataset.hpp"
#include "options.hpp"
#include "trainer.hpp"
#include "weft/net/run.hpp"

namespace {

// All processes of a host read the same command line and the same file; one of them is enough to complain.
digits::Voice voice_of_this_process() {
  const char* const local_rank = std::getenv("LOCAL_RANK");
  return local_rank == nullptr || std::string_view(local_rank) == "0" ? digits::Voice::speaks : digits::Voice::silent;
}

}  // namespace

int main(int argc, char** argv) {
  const digits::Voice voice = voice_of_this_process();
  const digits::ParsedOptions parsed = digits::parse_options(argc, argv, voice);
  if (parsed.exit_code.has_value()) return *parsed.exit_code;
  const digits::Options& options = parsed.options;
  digits::Split data;
  try {
    std::filesystem::path file = options.data;
    if (file.empty()) file = digits::find_data_file();
    data = digits::split_dataset(digits::load_dataset(file));
  } catch (const weft::Error& error) {
    if (voice == digits::Voice::speaks) std::fprintf(stderr, "train_digits: %s\n", error.what());
    return weft::kExitBadUse;
  }
  return weft::run(argc, argv,
                   [&options, &data](weft::Communicator& world) { return digits::train(world, &options, &data); });
}
