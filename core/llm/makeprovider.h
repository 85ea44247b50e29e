// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/llm/network/secrets.h"
#include "core/llm/provider.h"
#include "core/llm/providers/manualdesk.h"

#include <filesystem>

namespace klineage::llm {

/// What a provider needs besides its name; each one reads what is meant for it.
struct ProviderOptions {
    std::string baseUrl;      ///< anthropic, openai: empty: the provider's own
    KeyCallback key;          ///< anthropic, openai: the desktop keychain; the environment is asked after it
    std::optional<bool> paid; ///< anthropic, openai, exec; left out: as they say themselves
    NoticeCallback notice;    ///< anthropic, openai
    double timeoutSeconds = 1800;     ///< anthropic, openai, exec: for one reply
    std::vector<std::string> command; ///< exec
    std::filesystem::path path;       ///< replay: transcript.jsonl; manual: a folder, when there is no desk
    std::shared_ptr<ManualDesk> desk; ///< manual: the window's
};

/// "anthropic", "openai", "manual", "exec", "replay".
[[nodiscard]] const std::vector<std::string> &providerNames();
/// Whether the provider's requests must name a model.
[[nodiscard]] bool needsModel(std::string_view provider);
/// Whether replies cost the table's prices unless it is said otherwise: not those of a server on this machine or of an own host
/// (models.toml). baseUrl may be empty.
[[nodiscard]] bool isPaidUnlessSaid(const std::string &provider, const std::string &baseUrl);
/// Whether this program was built with libcurl; without it there are no anthropic and openai.
[[nodiscard]] bool hasNetworkProviders();

[[nodiscard]] Result<std::unique_ptr<Provider>> makeProvider(const std::string &name,
                                                             ProviderOptions options);

} // namespace klineage::llm
