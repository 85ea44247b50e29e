// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/runs/stepcards.h"

#include "core/files/atomicfile.h"
#include "core/policy/policy.h"
#include "core/run/materialize/cards.h"
#include "core/run/runfiles.h"

#include <QCoreApplication>

#include <algorithm>
#include <string_view>

namespace klineage::ui {

namespace {

using Shown = StepCard::Shown;

QString stepCardText(const char *text)
{
    return QCoreApplication::translate("klineage::ui::StepCards", text);
}

std::string_view withoutEnd(std::string_view text)
{
    const std::size_t last = text.find_last_not_of(" \n\r\t");
    return last == std::string_view::npos ? std::string_view() : text.substr(0, last + 1);
}

bool has(const std::vector<llm::Request> &requests, std::string_view part)
{
    if (part.empty())
        return false;
    return std::any_of(requests.begin(), requests.end(), [part](const llm::Request &request) {
        return request.system.find(part) != std::string::npos
               || std::any_of(request.messages.begin(), request.messages.end(),
                              [part](const llm::Message &message) {
                                  return message.text.find(part) != std::string::npos;
                              });
    });
}

bool isWordEnd(const std::string &text, std::size_t at)
{
    return at >= text.size()
           || std::string_view("abcdefghijklmnopqrstuvwxyz0123456789-").find(text[at])
                  == std::string_view::npos;
}

/// A name is no part of a longer one.
bool names(const std::string &text, const std::string &name)
{
    for (std::size_t at = text.find(name); at != std::string::npos; at = text.find(name, at + 1)) {
        if ((at == 0 || isWordEnd(text, at - 1)) && isWordEnd(text, at + name.size()))
            return true;
    }
    return false;
}

bool isNamed(const std::vector<llm::Request> &requests, const std::string &name)
{
    return std::any_of(requests.begin(), requests.end(), [&name](const llm::Request &request) {
        return names(request.system, name)
               || std::any_of(request.messages.begin(), request.messages.end(),
                              [&name](const llm::Message &message) {
                                  return message.role == llm::Role::User && names(message.text, name);
                              });
    });
}

Shown shownIn(const std::vector<llm::Request> &requests, const policy::LoadedCard &card)
{
    if (has(requests, withoutEnd(card.text)))
        return Shown::Text;
    if (has(requests, withoutEnd(card.index)))
        return Shown::Line;
    return isNamed(requests, card.name) ? Shown::Named : Shown::Nothing;
}

QStringList sentences(const std::vector<std::string> &texts)
{
    QStringList list;
    for (const std::string &text : texts)
        list << QString::fromStdString(text);
    return list;
}

bool isAbout(const run::StepRecord &step, const std::string &name)
{
    return std::find(step.cards.begin(), step.cards.end(), name) != step.cards.end();
}

/// Runs that retrieve nothing name the cards that a step is about.
StepCards namedCards(const RunEntry &run, const run::StepRecord &step)
{
    StepCards found;
    for (const std::string &name : step.cards) {
        StepCard card;
        card.name = QString::fromStdString(name);
        card.shown = Shown::Named;
        card.isAbout = true;
        card.why << stepCardText("The step is about this card.");
        found.cards.push_back(std::move(card));
    }
    if (found.cards.empty())
        found.problem =
            run.record.settings.kind == run::Kind::Materialize
                ? stepCardText("The run took no cards from the library.")
                : stepCardText(
                    "A run of this kind takes its cards step by step, and this step is about none.");
    return found;
}

} // namespace

StepCards readStepCards(const RunEntry &run, const run::StepRecord &step,
                        const std::vector<llm::Request> &requests)
{
    const std::filesystem::path file = run.record.directory / "cards.json";
    std::error_code ignored;
    if (!std::filesystem::exists(file, ignored))
        return namedCards(run, step);
    StepCards found;
    const Result<std::string> bytes = files::readFile(file, run::maxKeptBytes);
    const Result<run::CardChoice> choice = bytes ? run::parseCardChoice(*bytes, "cards.json")
                                                 : Result<run::CardChoice>(tl::unexpected(bytes.error()));
    if (!choice) {
        found.problem = QString::fromStdString(choice.error().message);
        return found;
    }
    for (const run::TakenCard &taken : choice->taken) {
        StepCard card;
        card.name = QString::fromStdString(taken.card.name);
        card.revision = taken.revision;
        card.intent = QString::fromStdString(taken.card.intent);
        card.text = QString::fromStdString(taken.card.text);
        card.shown = shownIn(requests, taken.card);
        card.isAbout = isAbout(step, taken.card.name);
        card.why = sentences(taken.reasons);
        found.cards.push_back(std::move(card));
    }
    // What the question has most of comes first; retrieval put the best first.
    std::stable_sort(found.cards.begin(), found.cards.end(), [](const StepCard &a, const StepCard &b) {
        return static_cast<int>(a.shown) < static_cast<int>(b.shown);
    });
    for (const run::BlockedCard &blocked : choice->blocked) {
        StepCard card;
        card.name = QString::fromStdString(blocked.card);
        card.shown = Shown::Missed;
        card.why = sentences(blocked.rules);
        found.cards.push_back(std::move(card));
    }
    if (found.cards.empty())
        found.problem =
            stepCardText("Retrieval found no card that fits the root, and none that nearly does.");
    return found;
}

StatusStyle shownStyle(StepCard::Shown shown)
{
    switch (shown) {
    case Shown::Text:
        return {stepCardText("whole text"), QStringLiteral("●"), Tone::Good};
    case Shown::Line:
        return {stepCardText("a line"), QStringLiteral("◐"), Tone::Accent};
    case Shown::Named:
        return {stepCardText("its name"), QStringLiteral("◦"), Tone::Accent};
    case Shown::Nothing:
        return {stepCardText("not here"), QStringLiteral("○"), Tone::Neutral};
    default:
        return {stepCardText("near miss"), QStringLiteral("×"), Tone::Warn};
    }
}

} // namespace klineage::ui
