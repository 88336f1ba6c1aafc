// What a reactor drives besides its own ready list: the one way in which net and gpu are called from below.
#pragma once

namespace weft {

/// Something that must be looked at in every turn of a reactor because nobody tells when it has changed: completion
/// queues, rings in shared memory, flags that a stream writes. Thread: the reactor's.
class Poller {
 public:
  /// Does a bounded amount of work. Returns whether anything happened (the reactor then stays awake).
  virtual bool poll() noexcept = 0;

  /// Before the reactor blocks. After true, whatever this poller waits for must end the wait: by a descriptor that the
  /// io engine watches, or by Wakeup::notify(). False: there is work, do not block. Called again before each wait.
  virtual bool prepare_to_block() noexcept = 0;

  /// After a wait, or after another poller refused it. Called only when prepare_to_block() returned true.
  virtual void after_block() noexcept = 0;

 protected:
  ~Poller() = default;
};

}  // namespace weft
