// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/run/perform/author.h"

#include "core/base/numbertext.h"
#include "core/base/suggest.h"
#include "core/files/filehandle.h"
#include "core/talk/trialtext.h"

#include <algorithm>
#include <cmath>

namespace klineage::run {

namespace fs = std::filesystem;

namespace {

constexpr std::size_t rulesBytes = 6000;    ///< of the system prompt beside root and cards
constexpr std::size_t turnBytes = 12'000;   ///< a verdict and a candidate, a question later
constexpr std::int64_t likelyOutput = 4000; ///< tokens: a candidate and a few sentences
constexpr double bytesPerToken = 3.5;

Status checkKeys(const Settings &settings)
{
    const std::vector<std::string> known{"base_url", "command", "transcript", "paid"};
    for (const auto &[name, value] : settings.author) {
        if (std::find(known.begin(), known.end(), name) == known.end())
            return fail(ErrorCode::InvalidInput, "The run's [author] has the unknown key '" + name + "'"
                                                     + didYouMean(name, known) + "; expected "
                                                     + quotedList(known) + '.');
        if (name == "paid" && value != "yes" && value != "no")
            return fail(ErrorCode::InvalidInput,
                        "The key 'paid' of the run's [author] is '" + value + "'; expected 'yes' or 'no'.");
    }
    return {};
}

} // namespace

Result<std::unique_ptr<llm::Provider>> makeRunProvider(const Settings &settings, const fs::path &workspace,
                                                       const fs::path &runDirectory,
                                                       std::shared_ptr<llm::ManualDesk> desk,
                                                       llm::KeyCallback key)
{
    if (Status sound = checkKeys(settings); !sound)
        return tl::unexpected(sound.error());
    const auto value = [&](const char *name) {
        const auto it = settings.author.find(name);
        return it == settings.author.end() ? std::string() : it->second;
    };
    llm::ProviderOptions options;
    options.baseUrl = value("base_url");
    options.key = std::move(key);
    if (const std::string paid = value("paid"); !paid.empty())
        options.paid = paid == "yes";
    if (const std::string command = value("command"); !command.empty())
        options.command = {"/bin/sh", "-c", "cd \"$1\" || exit 127\n" + command, "sh", workspace.string()};
    options.path = value("transcript");
    if (settings.provider == "manual" && !desk) {
        options.path = runDirectory / "manual";
        std::error_code problem;
        fs::create_directories(options.path, problem);
        if (problem)
            return files::systemError("create", options.path, problem.value());
    }
    options.desk = std::move(desk);
    return llm::makeProvider(settings.provider, std::move(options));
}

Result<std::optional<Estimate>> estimateCost(const Settings &settings, bool isPaid,
                                             const llm::PriceTable &prices, std::size_t rootBytes,
                                             std::size_t cardBytes)
{
    if (!isPaid)
        return std::optional<Estimate>();
    const llm::Price *price = prices.find(settings.model);
    if (!price)
        return tl::unexpected(llm::unknownPrice(prices, settings.model));
    const auto tokens = [](std::size_t bytes) {
        return static_cast<std::int64_t>(std::ceil(static_cast<double>(bytes) / bytesPerToken));
    };
    const std::int64_t prefix = tokens(rulesBytes + rootBytes + cardBytes);
    llm::Usage first;
    first.cacheWrite = prefix;
    first.input = 500;
    first.output = cardBytes > 0 ? 500 : likelyOutput; // the answer to the load is a short plan
    llm::Usage later;
    later.cacheRead = prefix + tokens(4 * turnBytes); // the chat in the middle of its life
    later.cacheWrite = tokens(turnBytes);
    later.output = likelyOutput;
    Estimate estimate;
    estimate.firstDollars = llm::dollars(*price, first);
    estimate.laterDollars = llm::dollars(*price, later);
    const double left = std::max(0.0, settings.capDollars - estimate.firstDollars);
    const double affordable = estimate.laterDollars > 0 ? left / estimate.laterDollars : 1e6;
    estimate.questions =
        static_cast<int>(std::min(affordable, 1e6)) + (settings.capDollars >= estimate.firstDollars);
    if (settings.maxSteps > 0)
        estimate.questions = std::min(estimate.questions, settings.maxSteps);
    if (estimate.questions > 0)
        estimate.dollars = estimate.firstDollars + (estimate.questions - 1) * estimate.laterDollars;
    estimate.text = "The first question will cost about $" + fixedText(estimate.firstDollars, 4)
                    + ", each after it about $" + fixedText(estimate.laterDollars, 4) + ": about "
                    + std::to_string(estimate.questions) + " questions and $" + fixedText(estimate.dollars, 2)
                    + " within the cap of $" + fixedText(settings.capDollars, 2) + ", by the prices of "
                    + prices.date + '.';
    return std::optional(std::move(estimate));
}

} // namespace klineage::run
