// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/base/random.h"

#include <cerrno>
#include <cstdlib>
#include <string_view>
#include <sys/random.h>

namespace klineage {

std::uint64_t entropy()
{
    std::uint64_t value = 0;
    for (;;) {
        const auto got = ::getrandom(&value, sizeof value, 0);
        if (got == static_cast<ssize_t>(sizeof value))
            return value;
        if (got < 0 && errno != EINTR)
            std::abort(); // a kernel without getrandom: a guessable seed would be worse than none
    }
}

std::string randomId()
{
    constexpr std::string_view digits = "0123456789abcdef";
    std::string id;
    std::uint64_t bits = entropy();
    for (int digit = 0; digit < 16; ++digit, bits >>= 4)
        id += digits[bits & 15];
    return id;
}

} // namespace klineage
