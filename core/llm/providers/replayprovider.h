// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/llm/author.h"

namespace klineage::llm {

/// Answers from a recorded transcript.jsonl, in order and byte for byte, free of charge. A prompt that is not the recorded one is
/// ErrorCode::Conflict and names the first difference; one after the last is NotFound. A refused prompt does not use up its answer.
class ReplayProvider final : public Provider
{
public:
    [[nodiscard]] static Result<std::unique_ptr<ReplayProvider>> open(
        const std::filesystem::path &transcript);

    [[nodiscard]] std::string name() const override { return "replay"; }
    [[nodiscard]] bool isPaid() const override { return false; }
    [[nodiscard]] tl::expected<Reply, ProviderFailure> ask(const Request &request, std::stop_token stop,
                                                           const TextCallback &onText = {}) override;

private:
    std::filesystem::path m_file;
    std::vector<Exchange> m_exchanges;
    std::size_t m_next = 0;
};

} // namespace klineage::llm
