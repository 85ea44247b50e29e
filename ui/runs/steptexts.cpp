// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/runs/steptexts.h"

#include "core/llm/author.h"

#include <QCoreApplication>
#include <QStringList>

#include <algorithm>

namespace klineage::ui {

namespace {

QString stepWord(const char *text)
{
    return QCoreApplication::translate("klineage::ui::StepTexts", text);
}

QString heading(const QString &text)
{
    return QStringLiteral("──── %1 ────").arg(text);
}

QString replyHeading(const llm::Exchange &exchange)
{
    QStringList parts{QString::fromStdString(exchange.provider)};
    if (!exchange.reply.model.empty())
        parts << QString::fromStdString(exchange.reply.model);
    if (exchange.reply.usageKnown && exchange.reply.usage != llm::Usage{})
        parts << stepWord("%1 tokens in, %2 out")
                     .arg(exchange.reply.usage.input + exchange.reply.usage.cacheRead
                          + exchange.reply.usage.cacheWrite)
                     .arg(exchange.reply.usage.output);
    parts << formatDollars(exchange.dollars);
    return heading(parts.join(QStringLiteral(" · ")));
}

} // namespace

QString requestText(const llm::Request &request)
{
    QStringList parts;
    if (!request.system.empty())
        parts << heading(stepWord("rules")) << QString::fromStdString(request.system);
    for (const llm::Message &message : request.messages)
        parts << heading(message.role == llm::Role::User ? stepWord("question") : stepWord("earlier reply"))
              << QString::fromStdString(message.text);
    return parts.join(QStringLiteral("\n\n"));
}

StepTexts readStepTexts(const RunEntry &run, const run::StepRecord &step)
{
    if (step.exchanges.empty()) {
        const QString none = stepWord("Nobody was asked in this step.");
        return {none, none, readStepCards(run, step, {})};
    }
    const auto transcript = llm::readTranscript(run.record.directory / "transcript.jsonl");
    if (!transcript) {
        const QString why = QString::fromStdString(transcript.error().message);
        return {why, why, readStepCards(run, step, {})};
    }
    std::vector<llm::Request> requests;
    QStringList prompts;
    QStringList replies;
    for (const llm::Exchange &exchange : *transcript) {
        if (std::find(step.exchanges.begin(), step.exchanges.end(), exchange.number) == step.exchanges.end())
            continue;
        requests.push_back(exchange.request);
        prompts << requestText(exchange.request);
        replies << replyHeading(exchange) << QString::fromStdString(exchange.reply.text);
    }
    return {prompts.join(QStringLiteral("\n\n")), replies.join(QStringLiteral("\n\n")),
            readStepCards(run, step, requests)};
}

} // namespace klineage::ui
