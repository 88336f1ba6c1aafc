// libsodium wants to be initialised before anything else of it is used.
#pragma once

namespace weft::net::detail {

/// Any thread, any number of times. Aborts where libsodium finds no source of random numbers: going on would mean
/// guessable secrets.
void sodium_ready();

}  // namespace weft::net::detail
