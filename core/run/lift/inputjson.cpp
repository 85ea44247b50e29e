// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/run/lift/group.h"

#include "core/files/jsonreader.h"

namespace klineage::run {

namespace {

using files::JsonReader;
using nlohmann::json;

constexpr std::size_t maxItems = 100'000;
constexpr std::size_t maxPromptText = std::size_t{1} << 20;

json scopeJson(const skills::Scope &scope)
{
    return {{"cases", scope.cases},
            {"languages", scope.languages},
            {"platforms", scope.platforms},
            {"prior_actions", scope.priorActions}};
}

std::vector<std::string> readTexts(JsonReader &reader, const char *key)
{
    std::vector<std::string> texts;
    if (const json *items = reader.optionalArray(key, maxItems)) {
        for (const json &item : *items)
            texts.push_back(files::readText(item, reader.pathOf(key)));
    }
    return texts;
}

std::vector<double> readNumbers(JsonReader &reader, const char *key)
{
    std::vector<double> numbers;
    if (const json *items = reader.optionalArray(key, maxItems)) {
        for (const json &item : *items)
            numbers.push_back(files::readNumber(item, reader.pathOf(key)));
    }
    return numbers;
}

Figures readFigures(const json &value)
{
    JsonReader reader(value, {});
    Figures figures;
    figures.factors = readNumbers(reader, "factors");
    figures.percents = readNumbers(reader, "percents");
    figures.times = readNumbers(reader, "times");
    figures.rates = readNumbers(reader, "rates");
    reader.finish();
    return figures;
}

skills::Scope readScope(const json &value)
{
    JsonReader reader(value, {"scope"});
    skills::Scope scope;
    scope.cases = readTexts(reader, "cases");
    scope.languages = readTexts(reader, "languages");
    scope.platforms = readTexts(reader, "platforms");
    scope.priorActions = readTexts(reader, "prior_actions");
    reader.finish();
    return scope;
}

std::vector<skills::Measured> readMeasured(const std::string &trial, const json &entries)
{
    std::vector<skills::Measured> measured;
    for (const json &entry : entries) {
        JsonReader reader(entry, {"measured"});
        skills::Measured one{trial, reader.text("against"), 0, 0, 0};
        one.factor = reader.number("factor");
        one.low = reader.number("low");
        one.high = reader.number("high");
        reader.finish();
        measured.push_back(std::move(one));
    }
    return measured;
}

NamedNumbers readNamed(const json &value)
{
    JsonReader reader(value, {"numbers"});
    NamedNumbers numbers;
    for (const auto &entry : value.items()) {
        const std::vector<double> values = readNumbers(reader, entry.key().c_str());
        numbers[entry.key()] = {values.begin(), values.end()};
    }
    reader.finish();
    return numbers;
}

LiftGroup readGroup(const json &value)
{
    JsonReader reader(value, {"groups"});
    LiftGroup group;
    group.category = reader.text("category");
    group.locus = reader.text("locus");
    group.signature = reader.text("signature");
    group.language = reader.text("language");
    group.transitions = reader.text("transitions", maxPromptText);
    group.attempts = reader.text("attempts", maxPromptText);
    group.evidence = readTexts(reader, "evidence");
    group.rejected = readTexts(reader, "rejected");
    if (const json *figures = reader.optionalObject("figures", maxItems)) {
        for (const auto &[citation, entry] : figures->items())
            group.figures[citation] = readFigures(entry);
    }
    group.stronger = reader.optionalText("stronger", maxPromptText);
    if (const json *measured = reader.optionalObject("measured", maxItems)) {
        for (const auto &[trial, entries] : measured->items())
            group.measured[trial] = readMeasured(trial, entries);
    }
    if (const json *numbers = reader.optionalObject("numbers", maxItems)) {
        for (const auto &[trial, named] : numbers->items())
            group.numbers[trial] = readNamed(named);
    }
    group.scope = readScope(reader.require("scope"));
    reader.finish();
    return group;
}

LiftInput readInput(const json &value)
{
    JsonReader reader(value, {});
    LiftInput input;
    if (const json *groups = reader.optionalArray("groups", maxItems)) {
        for (const json &group : *groups)
            input.groups.push_back(readGroup(group));
    }
    if (const json *library = reader.optionalArray("library", maxItems)) {
        for (const json &entry : *library) {
            JsonReader card(entry, {"library"});
            KnownCard known;
            known.name = card.text("name");
            known.language = card.text("language");
            known.category = card.text("category");
            known.locus = card.text("locus");
            known.intent = card.text("intent");
            card.finish();
            input.library.push_back(std::move(known));
        }
    }
    reader.finish();
    return input;
}

} // namespace

std::string writeLiftInput(const LiftInput &input)
{
    json out{{"groups", json::array()}, {"library", json::array()}};
    for (const LiftGroup &group : input.groups) {
        json figures = json::object();
        for (const auto &[citation, entry] : group.figures)
            figures[citation] = {{"factors", entry.factors},
                                 {"percents", entry.percents},
                                 {"times", entry.times},
                                 {"rates", entry.rates}};
        json measured = json::object();
        for (const auto &[trial, entries] : group.measured) {
            measured[trial] = json::array();
            for (const skills::Measured &entry : entries)
                measured[trial].push_back({{"against", entry.against},
                                           {"factor", entry.factor},
                                           {"low", entry.low},
                                           {"high", entry.high}});
        }
        json numbers = json::object();
        for (const auto &[trial, named] : group.numbers)
            numbers[trial] = named;
        out["groups"].push_back({{"category", group.category},
                                 {"locus", group.locus},
                                 {"signature", group.signature},
                                 {"language", group.language},
                                 {"transitions", group.transitions},
                                 {"attempts", group.attempts},
                                 {"evidence", group.evidence},
                                 {"rejected", group.rejected},
                                 {"figures", figures},
                                 {"measured", measured},
                                 {"numbers", numbers},
                                 {"stronger", group.stronger},
                                 {"scope", scopeJson(group.scope)}});
    }
    for (const KnownCard &card : input.library)
        out["library"].push_back({{"name", card.name},
                                  {"language", card.language},
                                  {"category", card.category},
                                  {"locus", card.locus},
                                  {"intent", card.intent}});
    return out.dump(1, ' ', false, json::error_handler_t::replace) + '\n';
}

Result<LiftInput> parseLiftInput(const std::string &text)
{
    return files::parseJsonLine(text, "groups.json", readInput);
}

} // namespace klineage::run
