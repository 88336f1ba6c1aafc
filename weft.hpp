// Everything a program that uses Weft needs, in one include. Programs that count their compile time include the
// headers they use.
#pragma once

#include "weft/runtime/error.hpp"
