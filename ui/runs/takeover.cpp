// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/runs/takeover.h"

namespace klineage::ui {

TakeOverProvider::TakeOverProvider(std::unique_ptr<llm::Provider> provider,
                                   std::shared_ptr<llm::ManualDesk> desk,
                                   std::shared_ptr<const std::atomic<bool>> byHand)
    : m_provider(std::move(provider))
    , m_desk(std::move(desk))
    , m_byHand(std::move(byHand))
{}

std::string TakeOverProvider::name() const
{
    return m_isByHand ? m_desk.name() : m_provider->name();
}

bool TakeOverProvider::isPaid() const
{
    m_isByHand = m_byHand->load();
    return !m_isByHand && m_provider->isPaid();
}

tl::expected<llm::Reply, llm::ProviderFailure> TakeOverProvider::ask(const llm::Request &request,
                                                                     std::stop_token stop,
                                                                     const llm::TextCallback &onText)
{
    return m_isByHand ? m_desk.ask(request, std::move(stop), onText)
                      : m_provider->ask(request, std::move(stop), onText);
}

} // namespace klineage::ui
