// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/llm/prices.h"
#include "core/llm/provider.h"

#include <deque>

/// Answers from a list; what it was asked is kept.
class ScriptedProvider final : public klineage::llm::Provider
{
public:
    using Answer = tl::expected<klineage::llm::Reply, klineage::llm::ProviderFailure>;

    std::deque<Answer> answers;
    std::vector<klineage::llm::Request> asked;
    bool paid = true;

    std::string name() const override { return "scripted"; }
    bool isPaid() const override { return paid; }
    Answer ask(const klineage::llm::Request &request, std::stop_token,
               const klineage::llm::TextCallback &onText) override
    {
        asked.push_back(request);
        if (answers.empty())
            return failure(klineage::ErrorCode::Internal, "The script is at its end.", false);
        Answer answer = answers.front();
        answers.pop_front();
        if (answer && onText)
            onText(answer->text);
        return answer;
    }

    static Answer failure(klineage::ErrorCode code, const std::string &message, bool mayBeCharged)
    {
        return tl::unexpected(klineage::llm::ProviderFailure{{code, message, {}}, {}, mayBeCharged});
    }
    static Answer reply(const std::string &text, std::int64_t input, std::int64_t output)
    {
        klineage::llm::Reply made;
        made.text = text;
        made.usage = {input, 0, 0, output};
        made.model = "model-1";
        return made;
    }
};

/// A request with one message.
inline klineage::llm::Request question(const std::string &text)
{
    klineage::llm::Request request;
    request.purpose = "test";
    request.model = "model-1";
    request.system = "You answer.";
    request.messages = {{klineage::llm::Role::User, text, false}};
    request.maxOutputTokens = 1000;
    return request;
}

/// 1 and 10 dollars a million: one and ten micro-dollars a token.
inline klineage::llm::PriceTable testPrices()
{
    return {"2026-11-21", "made up", {{"model-1", 1, 0.1, 1.25, 10}}, "test prices"};
}
