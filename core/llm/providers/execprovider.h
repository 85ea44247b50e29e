// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/llm/provider.h"

#include <filesystem>

namespace klineage::llm {

struct ExecOptions {
    std::vector<std::string> command; ///< program (looked up on PATH when it has no slash) and arguments
    std::filesystem::path workingDirectory;
    double timeoutSeconds = 1800;
    bool paid = false; ///< whether its replies cost the table's prices
};

/// A program that answers. It reads the request as one JSON object on its stdin (as transcripts have it, and "fingerprint") and
/// writes the reply to its stdout: either plain text, or one JSON object {"text": …} with "usage", "model" and "stop" if it likes.
/// It must end with exit code 0 before the deadline; a stop request kills it and all its children at once.
class ExecProvider final : public Provider
{
public:
    explicit ExecProvider(ExecOptions options);

    [[nodiscard]] std::string name() const override { return "exec"; }
    [[nodiscard]] bool isPaid() const override { return m_options.paid; }
    [[nodiscard]] tl::expected<Reply, ProviderFailure> ask(const Request &request, std::stop_token stop,
                                                           const TextCallback &onText = {}) override;

private:
    ExecOptions m_options;
};

/// The reply in what the program wrote. InvalidInput when it is a JSON object with "text" and anything else that is wrong.
[[nodiscard]] Result<Reply> parseExecOutput(std::string_view output);

} // namespace klineage::llm
