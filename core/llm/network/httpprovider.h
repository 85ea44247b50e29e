// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/llm/network/baseurl.h"
#include "core/llm/network/dialect.h"
#include "core/llm/network/httppost.h"
#include "core/llm/network/retry.h"
#include "core/llm/network/secrets.h"

#include <random>

namespace klineage::llm {

struct NetworkOptions {
    std::string baseUrl; ///< empty: the provider's own
    KeyCallback key;     ///< before the environment
    std::optional<bool>
        paid; ///< left out: servers on this machine and own ones are free, all others are paid
    std::vector<std::string> ownHosts; ///< as in OwnModels
    NoticeCallback notice;
    HttpLimits limits;
    RetryPolicy retry;
    std::uint64_t seed = std::random_device()(); ///< of the jitter
};

/// A model behind an API. What certainly was not charged (no connection, 408, 409, 429, 5xx) is sent again with back-off, as long as the
/// policy says; what may have been charged never is: that is the caller's money.
class HttpProvider final : public Provider
{
public:
    /// InvalidInput when the base URL is none to be trusted with a prompt.
    [[nodiscard]] static Result<std::unique_ptr<HttpProvider>> create(std::unique_ptr<Dialect> dialect,
                                                                      NetworkOptions options);

    [[nodiscard]] std::string name() const override { return m_dialect->name(); }
    [[nodiscard]] bool isPaid() const override;
    [[nodiscard]] tl::expected<Reply, ProviderFailure> ask(const Request &request, std::stop_token stop,
                                                           const TextCallback &onText = {}) override;

private:
    struct Attempt;
    HttpProvider(std::unique_ptr<Dialect> dialect, BaseUrl url, NetworkOptions options);
    Result<std::string> key() const;
    Attempt tryOnce(const HttpRequest &request, const std::string &secret, const std::stop_token &stop,
                    const TextCallback &onText) const;
    Error refusal(const HttpResult &result) const;

    std::unique_ptr<Dialect> m_dialect;
    BaseUrl m_url;
    NetworkOptions m_options;
    std::mt19937_64 m_random;
};

} // namespace klineage::llm
