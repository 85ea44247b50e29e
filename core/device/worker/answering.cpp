// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/device/worker/answering.h"

#include "core/device/worker/messages.h"

#include <cstdio>

namespace klineage::gate::protocol {

using nlohmann::json;
using process::Deadline;

json failure(const Error &error)
{
    return {{"error", write(error)}};
}

int answerRequests(process::FramePipe &pipe, const char *who, const json &hello,
                   const std::function<json(const json &)> &answer)
{
    try {
        if (!pipe.send(hello, Deadline::in(10)))
            return 1;
        for (;;) {
            const auto request = pipe.receive(Deadline::never());
            if (!request)
                return pipe.ended() ? 0 : 1;
            json reply = answer(*request);
            reply["id"] = request->at("id");
            if (!pipe.send(reply, Deadline::in(60)))
                return 1;
        }
    } catch (const std::exception &problem) {
        std::fprintf(stderr, "klineage-gate %s: %s\n", who, problem.what());
        return 1;
    }
}

} // namespace klineage::gate::protocol
