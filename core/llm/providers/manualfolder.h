// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/llm/provider.h"

#include <filesystem>

namespace klineage::llm {

/// "manual" without a window: the request is written to request-N.md in a folder, and the reply is read from reply-N.md beside it, once
/// that file has not changed for settleSeconds. A request that the last ask of an earlier process left there, the same byte for byte,
/// is not written again, so a reply that came meanwhile is taken.
class FolderProvider final : public Provider
{
public:
    /// The folder must exist.
    explicit FolderProvider(std::filesystem::path folder, double settleSeconds = 1.0);

    [[nodiscard]] std::string name() const override { return "manual"; }
    [[nodiscard]] bool isPaid() const override { return false; }
    [[nodiscard]] tl::expected<Reply, ProviderFailure> ask(const Request &request, std::stop_token stop,
                                                           const TextCallback &onText = {}) override;

private:
    Result<int> place(const std::string &text);
    Result<std::string> waitFor(const std::filesystem::path &file, const std::stop_token &stop) const;

    std::filesystem::path m_folder;
    double m_settleSeconds;
    int m_last = 0; ///< answered in this process
};

/// The request as a person reads it: Markdown with the system prompt and each message under a heading.
[[nodiscard]] std::string requestMarkdown(const Request &request);

} // namespace klineage::llm
