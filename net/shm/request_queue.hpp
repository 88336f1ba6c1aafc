// A first-in, first-out queue of requests that bring their own link, for a transport's work in progress.
#pragma once

namespace weft::net {

/// T has a member `T* next`. Owns nothing, allocates nothing.
template <typename T>
class RequestQueue {
 public:
  RequestQueue() noexcept = default;
  RequestQueue(const RequestQueue&) = delete;
  RequestQueue& operator=(const RequestQueue&) = delete;

  [[nodiscard]] bool empty() const noexcept { return head_ == nullptr; }
  [[nodiscard]] T* front() const noexcept { return head_; }

  void push(T& request) noexcept {
    request.next = nullptr;
    *tail_ = &request;
    tail_ = &request.next;
  }

  /// Takes the oldest off; nullptr when there is none.
  T* pop() noexcept {
    T* const request = head_;
    if (request != nullptr) unlink(&head_);
    return request;
  }

  /// Takes the oldest one towards `peer` off; nullptr when there is none.
  template <typename Rank>
  T* pop_of(Rank peer) noexcept {
    for (T** link = &head_; *link != nullptr; link = &(*link)->next) {
      T* const request = *link;
      if (request->peer != peer) continue;
      unlink(link);
      return request;
    }
    return nullptr;
  }

 private:
  void unlink(T** link) noexcept {
    T* const request = *link;
    *link = request->next;
    if (tail_ == &request->next) tail_ = link;
    request->next = nullptr;
  }

  T* head_ = nullptr;
  T** tail_ = &head_;
};

}  // namespace weft::net
