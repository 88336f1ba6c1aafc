#include "weft/net/shm/shm_setup.hpp"

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <optional>
#include <span>
#include <utility>

#include "weft/net/bootstrap/handshake.hpp"
#include "weft/runtime/error.hpp"

namespace weft::net {
namespace {

constexpr std::uint64_t kMagic = 0x31306d6873666577;  // "wefshm01"

/// The connector's message; segment, doorbell and eventfd come with it.
struct Offer {
  std::uint64_t magic = kMagic;
  std::uint32_t segment_bytes = sizeof(PairSegment);
  std::uint32_t ring_lines = kRingLines;
  MemoryProbe probe{};
};
static_assert(sizeof(Offer) == 40);

/// The acceptor's; with ok, doorbell and eventfd come with it.
struct Answer {
  std::uint64_t magic = kMagic;
  std::uint32_t code = 0;  ///< Errc
  std::int32_t native = 0;
  MemoryProbe probe{};
};
static_assert(sizeof(Answer) == 40);

constexpr std::size_t kOfferFds = 3;
constexpr std::size_t kAnswerFds = 2;

template <typename T>
std::span<const std::byte> bytes_of(const T& message) noexcept {
  return std::as_bytes(std::span(&message, 1));
}
template <typename T>
std::span<std::byte> writable_bytes_of(T& message) noexcept {
  return std::as_writable_bytes(std::span(&message, 1));
}

std::string name_of(std::int32_t rank) {
  return "rank " + std::to_string(rank);
}

ucred credentials_of(int socket_fd) {
  ucred credentials{};
  socklen_t size = sizeof credentials;
  if (::getsockopt(socket_fd, SOL_SOCKET, SO_PEERCRED, &credentials, &size) != 0) {
    throw Error(Errc::io, "shm set-up", "the kernel does not say who the peer is", kNoRank, errno);
  }
  return credentials;
}

/// A write to anything else could block the reactor.
void require_non_blocking(int event_fd) {
  const int flags = ::fcntl(event_fd, F_GETFL);
  if (flags < 0 || (flags & O_NONBLOCK) == 0) {
    throw Error(Errc::protocol, "shm set-up", "the peer's eventfd would block");
  }
}

PeerMemory probe_peer(const ShmSelf& self, int socket_fd, const MemoryProbe& theirs) {
  const ucred credentials = credentials_of(socket_fd);
  PeerMemory memory = PeerMemory::probe(credentials.pid, theirs, self.read_other_process);
  if (memory.way() == PeerMemory::Way::same_process && !self.read_same_process) memory = PeerMemory();
  return memory;
}

/// Checks and maps what an offer came with.
void take_offer(const ShmSelf& self, const Offer& offer, std::vector<UniqueFd>& fds, int socket_fd, ShmLink& link) {
  if (offer.magic != kMagic || offer.segment_bytes != sizeof(PairSegment) || offer.ring_lines != kRingLines ||
      fds.size() != kOfferFds) {
    throw Error(Errc::protocol, "shm set-up", "no offer of this version");
  }
  link.segment = SharedMemory::open(std::move(fds[0]), sizeof(PairSegment), SharedMemory::Access::mutual);
  link.doorbell = SharedMemory::open(std::move(fds[1]), sizeof(Doorbell), SharedMemory::Access::owner_only);
  require_non_blocking(fds[2].get());
  link.event = std::move(fds[2]);
  link.memory = probe_peer(self, socket_fd, offer.probe);
}

Task<Answer> read_answer(Socket* socket, std::vector<UniqueFd>* fds) {
  Answer answer;
  co_await socket->read_with_fds(writable_bytes_of(answer), *fds, kAnswerFds);
  co_return answer;
}

}  // namespace

Task<ShmLink> shm_connect(const ShmSelf* self, std::int32_t peer, std::string name) {
  Socket socket = co_await connect_unix(self->reactor, std::move(name));
  const PeerHello mine{Purpose::shm, self->rank};
  const PeerHello theirs = co_await handshake_as_client(socket, self->token, mine);
  if (theirs.rank != peer) {
    throw Error(Errc::protocol, "shm connect to " + name_of(peer),
                name_of(theirs.rank) + " answers at its address; is the store of another run in use?", peer);
  }

  ShmLink link;
  link.peer = peer;
  link.side = PairSide::connector;
  link.segment = SharedMemory::create("weft-pair", sizeof(PairSegment), SharedMemory::Access::mutual);
  Offer offer;
  offer.probe = self->probe;
  const std::array<int, kOfferFds> passed{link.segment.fd(), self->doorbell.fd(), self->event_fd};
  co_await socket.write_with_fds(bytes_of(offer), passed);
  link.segment.close_fd();

  std::vector<UniqueFd> fds;
  const Answer answer = co_await read_answer(&socket, &fds);
  if (answer.magic != kMagic || answer.code > static_cast<std::uint32_t>(Errc::io)) {
    throw Error(Errc::protocol, "shm connect to " + name_of(peer), "its answer is no answer of this version", peer);
  }
  if (const Errc code = static_cast<Errc>(answer.code); code != Errc::ok) {
    throw Error(code, "shm connect to " + name_of(peer),
                "it could not set up its side: " + std::string(to_string(code)), peer, answer.native);
  }
  if (fds.size() != kAnswerFds) {
    throw Error(Errc::protocol, "shm connect to " + name_of(peer), "its answer came without its descriptors", peer);
  }
  link.doorbell = SharedMemory::open(std::move(fds[0]), sizeof(Doorbell), SharedMemory::Access::owner_only);
  require_non_blocking(fds[1].get());
  link.event = std::move(fds[1]);
  link.memory = probe_peer(*self, socket.fd(), answer.probe);
  link.socket = socket.release();
  co_return link;
}

Task<ShmLink> shm_accept(const ShmSelf* self, Socket socket) {
  const ucred credentials = credentials_of(socket.fd());
  if (credentials.uid != ::geteuid()) {
    throw Error(Errc::unauthorized, "shm accept",
                "process " + std::to_string(credentials.pid) + " of user " + std::to_string(credentials.uid) +
                    " was turned away: another user");
  }
  const PeerHello mine{Purpose::shm, self->rank};
  const PeerHello theirs = co_await handshake_as_server(socket, self->token, mine);

  Offer offer;
  std::vector<UniqueFd> fds;
  co_await socket.read_with_fds(writable_bytes_of(offer), fds, kOfferFds);

  ShmLink link;
  link.peer = theirs.rank;
  link.side = PairSide::acceptor;
  std::optional<Error> refusal;
  try {
    if (theirs.rank < 0 || static_cast<std::size_t>(theirs.rank) >= self->connected.size() ||
        theirs.rank == self->rank) {
      throw Error(Errc::mismatch, "shm accept", name_of(theirs.rank) + " is no peer of " + name_of(self->rank));
    }
    if (self->connected[static_cast<std::size_t>(theirs.rank)] != nullptr) {
      throw Error(Errc::address_in_use, "shm accept", name_of(theirs.rank) + " is connected already", theirs.rank);
    }
    take_offer(*self, offer, fds, socket.fd(), link);
  } catch (const Error& error) {
    refusal = error;
  }

  Answer answer;
  answer.probe = self->probe;
  if (refusal.has_value()) {
    answer.code = static_cast<std::uint32_t>(refusal->code());
    answer.native = refusal->native();
    co_await socket.write_all(bytes_of(answer));
    throw Error(*refusal);
  }
  const std::array<int, kAnswerFds> passed{self->doorbell.fd(), self->event_fd};
  co_await socket.write_with_fds(bytes_of(answer), passed);
  link.socket = socket.release();
  co_return link;
}

}  // namespace weft::net
