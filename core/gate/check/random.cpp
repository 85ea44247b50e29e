// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/gate/check/random.h"

#include <cerrno>
#include <cstdlib>
#include <sys/random.h>

namespace klineage::gate {

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

} // namespace klineage::gate
