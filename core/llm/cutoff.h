// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/llm/message.h"

namespace klineage::llm {

/// Whether a reply that was cut off ended well before the limit that it was given: question and reply fill what the server takes, and a
/// higher limit does not mend that. False where the server did not count.
[[nodiscard]] inline bool filledTheContext(const Reply &reply, int maxOutputTokens)
{
    return reply.stop == StopReason::MaxTokens && reply.usageKnown && reply.usage.output > 0
           && reply.usage.output < maxOutputTokens - maxOutputTokens / 16;
}

} // namespace klineage::llm
