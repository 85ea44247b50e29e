// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/llm/prices.h"

#include "core/files/tomlentries.h"
#include "core/files/tomlwriter.h"

#include <algorithm>
#include <set>

namespace klineage::llm {

namespace {

using files::TomlTable;

constexpr std::size_t maxEntries = 10'000;
constexpr double maxPrice = 1e6;
/// What chat templates and servers add of their own: around the whole, and around each message.
constexpr std::int64_t tokensAroundRequest = 512;
constexpr std::int64_t tokensAroundMessage = 32;

bool isDate(std::string_view text)
{
    if (text.size() != 10)
        return false;
    for (std::size_t i = 0; i < text.size(); ++i) {
        const bool dash = i == 4 || i == 7;
        if (dash ? text[i] != '-' : text[i] < '0' || text[i] > '9')
            return false;
    }
    return true;
}

double amount(const TomlTable &table, const char *key, double value)
{
    if (value >= 0 && value <= maxPrice)
        return value;
    table.fail(key, std::string("'") + key + "' is not between 0 and a million dollars.");
    return 0;
}

template <typename Rates>
void readRates(const TomlTable &table, Rates &rates)
{
    rates.input = amount(table, "input", table.number("input"));
    rates.output = amount(table, "output", table.number("output"));
    rates.cacheRead = amount(table, "cache_read", table.number("cache_read", rates.input));
    rates.cacheWrite = amount(table, "cache_write", table.number("cache_write", rates.input));
}

Price readPrice(const TomlTable &table, std::set<std::string> &seen)
{
    Price price;
    price.model = table.string("name");
    const std::size_t star = price.model.find('*');
    if (table.has("name") && (price.model.empty() || price.model.size() > 256))
        table.fail("name", "'name' is empty or longer than 256 bytes.");
    else if (star != std::string::npos && star + 1 != price.model.size())
        table.fail("name", "'name' has a '*' that is not its end.");
    else if (table.has("name") && !seen.insert(price.model).second)
        table.fail("name", "there are two prices for '" + price.model + "'.");
    readRates(table, price);
    if (const std::optional<TomlTable> dearer = table.table("long_prompt")) {
        Price::LongPrompt rates;
        rates.aboveTokens = dearer->integer("above");
        if (rates.aboveTokens < 1 || rates.aboveTokens > maxUsageTokens)
            dearer->fail("above", "'above' is no number of tokens from 1.");
        readRates(*dearer, rates);
        price.longPrompt = rates;
    }
    return price;
}

std::int64_t inputBytes(const Request &request)
{
    std::size_t bytes = request.system.size();
    for (const Message &message : request.messages)
        bytes += message.text.size();
    return static_cast<std::int64_t>(bytes);
}

template <typename Rates>
double cost(const Rates &rates, const Usage &usage)
{
    const auto part = [](std::int64_t tokens, double perMillion) {
        return static_cast<double>(tokens) * perMillion;
    };
    return (part(usage.input, rates.input) + part(usage.cacheRead, rates.cacheRead)
            + part(usage.cacheWrite, rates.cacheWrite) + part(usage.output, rates.output))
           / 1e6;
}

template <typename Rates>
double most(const Rates &rates, std::int64_t input, int output)
{
    const double dearest = std::max({rates.input, rates.cacheRead, rates.cacheWrite});
    return (static_cast<double>(input) * dearest + static_cast<double>(output) * rates.output) / 1e6;
}

} // namespace

const Price *PriceTable::find(std::string_view model) const
{
    const Price *best = nullptr;
    for (const Price &price : prices) {
        if (price.model == model)
            return &price;
        if (!price.model.ends_with('*'))
            continue;
        const std::string_view beginning = std::string_view(price.model).substr(0, price.model.size() - 1);
        if (model.starts_with(beginning) && (!best || price.model.size() > best->model.size()))
            best = &price;
    }
    return best;
}

Result<PriceTable> parsePrices(std::string_view text, const std::string &fileName)
{
    const auto document = files::TomlDocument::parse(text, fileName);
    if (!document)
        return tl::unexpected(document.error());
    const TomlTable root = document->root();
    PriceTable table;
    table.file = fileName;
    table.date = root.string("date");
    if (root.has("date") && !isDate(table.date))
        root.fail("date", "'date' is '" + table.date + "'; expected a day such as \"2026-11-21\".");
    table.source = root.string("source");
    std::set<std::string> seen;
    for (const TomlTable &model : files::tomlEntries(root, "model", maxEntries))
        table.prices.push_back(readPrice(model, seen));
    if (Status ok = document->finish(); !ok)
        return tl::unexpected(ok.error());
    return table;
}

std::string writePrices(const PriceTable &table)
{
    files::TomlWriter writer;
    writer.string("date", table.date);
    writer.string("source", table.source);
    for (const Price &price : table.prices) {
        writer.beginArrayTable("model");
        writer.string("name", price.model);
        writer.number("input", price.input);
        writer.number("cache_read", price.cacheRead);
        writer.number("cache_write", price.cacheWrite);
        writer.number("output", price.output);
        if (const auto &dearer = price.longPrompt)
            writer.written("long_prompt",
                           files::tomlInlineTable({{"above", std::to_string(dearer->aboveTokens)},
                                                   {"input", files::tomlNumber(dearer->input)},
                                                   {"cache_read", files::tomlNumber(dearer->cacheRead)},
                                                   {"cache_write", files::tomlNumber(dearer->cacheWrite)},
                                                   {"output", files::tomlNumber(dearer->output)}}));
    }
    return writer.text();
}

double dollars(const Price &price, const Usage &usage)
{
    const std::int64_t input = usage.input + usage.cacheRead + usage.cacheWrite;
    if (price.longPrompt && input > price.longPrompt->aboveTokens)
        return cost(*price.longPrompt, usage);
    return cost(price, usage);
}

std::int64_t mostInputTokens(const Request &request)
{
    return inputBytes(request) + tokensAroundRequest
           + tokensAroundMessage * static_cast<std::int64_t>(request.messages.size() + 1);
}

double mostDollars(const Price &price, const Request &request)
{
    const std::int64_t input = mostInputTokens(request);
    const double usual = most(price, input, request.maxOutputTokens);
    if (!price.longPrompt || input <= price.longPrompt->aboveTokens)
        return usual;
    return std::max(usual, most(*price.longPrompt, input, request.maxOutputTokens));
}

double likelyDollars(const Price &price, const Request &request, std::int64_t outputTokens)
{
    constexpr double bytesPerToken = 3.5;
    Usage usage;
    usage.input = static_cast<std::int64_t>(static_cast<double>(inputBytes(request)) / bytesPerToken);
    usage.output = std::min<std::int64_t>(outputTokens, request.maxOutputTokens);
    return dollars(price, usage);
}

} // namespace klineage::llm
