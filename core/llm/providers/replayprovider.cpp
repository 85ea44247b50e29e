// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/llm/providers/replayprovider.h"

namespace klineage::llm {

Result<std::unique_ptr<ReplayProvider>> ReplayProvider::open(const std::filesystem::path &transcript)
{
    Result<std::vector<Exchange>> exchanges = readTranscript(transcript);
    if (!exchanges)
        return tl::unexpected(exchanges.error());
    auto provider = std::make_unique<ReplayProvider>();
    provider->m_file = transcript;
    provider->m_exchanges = std::move(*exchanges);
    return provider;
}

tl::expected<Reply, ProviderFailure> ReplayProvider::ask(const Request &request, std::stop_token,
                                                         const TextCallback &onText)
{
    if (m_next == m_exchanges.size())
        return tl::unexpected(ProviderFailure{
            {ErrorCode::NotFound,
             "The transcript '" + m_file.string() + "' has " + std::to_string(m_exchanges.size())
                 + " exchanges, and all of them have been replayed.",
             "What is asked now has no recorded answer; go on with another provider."},
            {},
            false});
    const Exchange &recorded = m_exchanges[m_next];
    if (Status same = checkSamePrompt(recorded, request, m_file); !same)
        return tl::unexpected(ProviderFailure{same.error(), {}, false});
    ++m_next;
    if (onText)
        onText(recorded.reply.text);
    return recorded.reply;
}

} // namespace klineage::llm
