#include "weft/gpu/bucket_transport.hpp"

#include "weft/coll/all_reduce.hpp"

namespace weft::gpu {
namespace {

class AllReduceTransport final : public BucketTransport {
 public:
  AllReduceTransport(Communicator& communicator, coll::ReduceOp op) noexcept : communicator_(communicator), op_(op) {}

  Task<void> reduce(std::span<float> values, std::size_t /*bucket*/) override {
    return coll::all_reduce(communicator_, values, op_);
  }
  Task<void> agree_max(std::span<std::uint64_t> values) override {
    return coll::all_reduce(communicator_, values, coll::max);
  }
  Duration default_timeout() const noexcept override { return communicator_.default_timeout(); }

 private:
  Communicator& communicator_;
  coll::ReduceOp op_;
};

}  // namespace

std::unique_ptr<BucketTransport> make_all_reduce_transport(Communicator& communicator, coll::ReduceOp op) {
  return std::make_unique<AllReduceTransport>(communicator, op);
}

}  // namespace weft::gpu
