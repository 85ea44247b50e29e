// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/cli/commands.h"
#include "app/cli/interrupt.h"
#include "app/cli/runstart.h"
#include "app/cli/texttable.h"

#include "core/base/numbertext.h"
#include "core/files/atomicfile.h"
#include "core/llm/author.h"
#include "core/llm/cutoff.h"
#include "core/llm/makeprovider.h"
#include "core/llm/modelsettings.h"
#include "core/process/scratchfolder.h"

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include <cstdio>
#include <iostream>
#include <iterator>
#include <map>
#include <utility>

#include <unistd.h>

namespace klineage::cli {

using nlohmann::json;

namespace {

struct AskOptions {
    std::string promptFile = "-";
    std::string systemFile;
    std::string provider;
    std::string model;
    std::string command;
    std::string baseUrl;
    std::string transcript;
    std::string desk;
    std::string record;
    std::string paid;
    double cap = 1;
    int maxTokens = 4096;
    std::map<std::string, std::string> toServer;
    bool estimateOnly = false;
    bool stream = false;
};

/// Nothing: the built-in and the user's own tables are there outside of a workspace too.
std::filesystem::path workspaceOrNothing(const Session &session)
{
    return session.workspaceRoot().value_or(std::filesystem::path());
}

Result<std::string> readText(const std::string &file)
{
    if (file != "-")
        return files::readFile(file, llm::maxRequestBytes);
    std::string text;
    char buffer[65536];
    while (text.size() <= llm::maxRequestBytes) {
        const std::size_t got = std::fread(buffer, 1, sizeof buffer, stdin);
        if (got == 0)
            break;
        text.append(buffer, got);
    }
    return text;
}

Result<llm::Request> makeRequest(const AskOptions &options)
{
    llm::Request request;
    request.purpose = "ask";
    request.model = options.model;
    request.maxOutputTokens = options.maxTokens;
    std::map<std::string, std::string> toServer = options.toServer;
    if (llm::needsModel(options.provider)) {
        const Result<llm::OwnModels> own = llm::loadModels();
        if (!own)
            return tl::unexpected(own.error());
        llm::addModelSettings(*own, options.model, toServer);
    }
    if (Status applied = llm::applyAuthorKeys(toServer, request); !applied)
        return tl::unexpected(applied.error());
    const Result<std::string> prompt = readText(options.promptFile);
    if (!prompt)
        return tl::unexpected(prompt.error());
    request.messages = {{llm::Role::User, *prompt, false}};
    if (!options.systemFile.empty()) {
        const Result<std::string> system = readText(options.systemFile);
        if (!system)
            return tl::unexpected(system.error());
        request.system = *system;
    }
    if (Status sound = llm::checkRequest(request); !sound)
        return tl::unexpected(sound.error());
    return request;
}

void printNotice(const std::string &text)
{
    std::fprintf(stderr, "%s\n", text.c_str());
}

/// What a terminal would take for a command is not for a server to send: control characters are left out.
std::string printable(std::string_view text)
{
    std::string out(text);
    std::erase_if(out, [](char c) {
        const auto byte = static_cast<unsigned char>(c);
        return (byte < 0x20 && c != '\n' && c != '\t') || byte == 0x7f;
    });
    return out;
}

/// Prints a reply as it comes, into a terminal or where it was asked for.
class StreamPrinter
{
public:
    explicit StreamPrinter(bool isWanted)
        : m_isTerminal(::isatty(STDOUT_FILENO) != 0)
        , m_isOn(isWanted || m_isTerminal)
    {}
    [[nodiscard]] llm::TextCallback callback()
    {
        return m_isOn ? [this](std::string_view text) { print(text); } : llm::TextCallback();
    }
    /// What was printed was no reply: the next piece is from the beginning again.
    void startAgain()
    {
        if (std::exchange(m_printed, false))
            std::fputs("\n\n", stdout);
    }
    /// The rest of it.
    void end(const std::string &reply)
    {
        if (!m_printed)
            print(reply);
        if (!reply.ends_with('\n'))
            std::fputc('\n', stdout);
        std::fflush(stdout);
    }

private:
    void print(std::string_view text)
    {
        const std::string clean = m_isTerminal ? printable(text) : std::string(text);
        std::fwrite(clean.data(), 1, clean.size(), stdout);
        std::fflush(stdout);
        m_printed = true;
    }

    bool m_isTerminal;
    bool m_isOn;
    bool m_printed = false;
};

llm::ProviderOptions providerOptions(const AskOptions &options)
{
    llm::ProviderOptions made;
    made.baseUrl = options.baseUrl;
    if (!options.paid.empty())
        made.paid = options.paid == "yes";
    if (!options.command.empty())
        made.command = {"/bin/sh", "-c", options.command};
    made.notice = printNotice;
    made.path = options.provider == "replay" ? options.transcript : options.desk;
    return made;
}

json usageJson(const llm::Usage &usage)
{
    return {{"input", usage.input},
            {"cache_read", usage.cacheRead},
            {"cache_write", usage.cacheWrite},
            {"output", usage.output}};
}

int printEstimate(const Session &session, const llm::Provider &provider, const llm::PriceTable &prices,
                  const llm::Request &request)
{
    double most = 0;
    double likely = 0;
    if (provider.isPaid()) {
        const llm::Price *price = prices.find(request.model);
        if (!price)
            return session.fail(llm::unknownPrice(prices, request.model));
        most = llm::mostDollars(*price, request);
        likely = llm::likelyDollars(*price, request, request.maxOutputTokens / 4);
    }
    if (session.json())
        session.print({{"likely_dollars", likely}, {"most_dollars", most}});
    else
        std::printf("Likely $%.4f, at most $%.4f.\n", likely, most);
    return exitOk;
}

void printReply(const Session &session, const llm::Exchange &exchange, const llm::Ledger &ledger,
                StreamPrinter &stream)
{
    const llm::Reply &reply = exchange.reply;
    if (session.json()) {
        session.print({{"text", reply.text},
                       {"stop", toString(reply.stop)},
                       {"model", reply.model},
                       {"provider", exchange.provider},
                       {"usage", reply.usageKnown ? usageJson(reply.usage) : json()},
                       {"dollars", exchange.dollars},
                       {"spent_dollars", ledger.spentDollars()},
                       {"cap_dollars", ledger.capDollars()},
                       {"seconds", reply.seconds}});
        return;
    }
    stream.end(reply.text);
    const std::string tokens =
        reply.usageKnown ? std::to_string(reply.usage.input + reply.usage.cacheRead + reply.usage.cacheWrite)
                               + " tokens in, " + std::to_string(reply.usage.output) + " out"
                         : std::string("tokens unknown");
    std::fprintf(stderr, "%s: %s, $%.6f, %.1f s; stopped: %s\n", exchange.provider.c_str(), tokens.c_str(),
                 exchange.dollars, reply.seconds, toString(reply.stop));
    if (llm::filledTheContext(reply, exchange.request.maxOutputTokens))
        std::fprintf(
            stderr,
            "The reply was cut off after %lld tokens, before the limit of %d: with the prompt it fills what the "
            "server takes. Give the server a longer context (llama.cpp: -c), or ask in fewer words.\n",
            static_cast<long long>(reply.usage.output), exchange.request.maxOutputTokens);
    else if (reply.stop == llm::StopReason::MaxTokens)
        std::fprintf(stderr, "The reply was cut off at %d tokens; allow more with --max-tokens.\n",
                     exchange.request.maxOutputTokens);
}

int ask(const Session &session, const AskOptions &options)
{
    if (llm::needsModel(options.provider) && options.model.empty())
        return session.usage("The provider '" + options.provider + "' needs a --model.");
    const InterruptWatcher interrupt;
    const Result<llm::Request> request = makeRequest(options);
    if (!request)
        return session.usage(request.error().message);
    const Result<llm::PriceTable> prices = llm::loadPrices(workspaceOrNothing(session));
    if (!prices)
        return session.fail(prices.error());
    const Result<std::unique_ptr<llm::Provider>> provider =
        llm::makeProvider(options.provider, providerOptions(options));
    if (!provider)
        return provider.error().code == ErrorCode::InvalidInput ? session.usage(provider.error().message)
                                                                : session.fail(provider.error());
    if (options.estimateOnly)
        return printEstimate(session, **provider, *prices, *request);
    Result<process::ScratchFolder> scratch;
    if (options.record.empty()) {
        scratch = process::ScratchFolder::create();
        if (!scratch)
            return session.fail(scratch.error());
    }
    const std::filesystem::path folder =
        options.record.empty() ? scratch->path() : std::filesystem::path(options.record);
    Result<llm::Author> author = llm::Author::open(folder, **provider, *prices, options.cap);
    if (!author)
        return session.fail(author.error());
    StreamPrinter stream(options.stream);
    author->setNotice([&stream](const std::string &text) {
        stream.startAgain();
        printNotice(text);
    });
    const Result<llm::Exchange> exchange =
        author->ask(*request, interrupt.token(), session.json() ? llm::TextCallback() : stream.callback());
    if (!exchange) {
        stream.startAgain();
        return session.fail(exchange.error());
    }
    printReply(session, *exchange, author->ledger(), stream);
    return exitOk;
}

json priceJson(const llm::Price &price)
{
    json out{{"model", price.model},
             {"input", price.input},
             {"cache_read", price.cacheRead},
             {"cache_write", price.cacheWrite},
             {"output", price.output}};
    if (const auto &dearer = price.longPrompt)
        out["long_prompt"] = {{"above", dearer->aboveTokens},
                              {"input", dearer->input},
                              {"cache_read", dearer->cacheRead},
                              {"cache_write", dearer->cacheWrite},
                              {"output", dearer->output}};
    return out;
}

std::string amount(double dollars)
{
    return fixedText(dollars, 3);
}

int listPrices(const Session &session, bool asToml)
{
    const Result<llm::PriceTable> table = llm::loadPrices(workspaceOrNothing(session));
    if (!table)
        return session.fail(table.error());
    if (asToml) {
        std::printf("%s", llm::writePrices(*table).c_str());
        return exitOk;
    }
    json out{
        {"file", table->file}, {"date", table->date}, {"source", table->source}, {"models", json::array()}};
    using Align = TextTable::Align;
    TextTable rows({{"MODEL"},
                    {"INPUT", Align::Right},
                    {"CACHE READ", Align::Right},
                    {"CACHE WRITE", Align::Right},
                    {"OUTPUT", Align::Right},
                    {"ABOVE"}});
    for (const llm::Price &price : table->prices) {
        out["models"].push_back(priceJson(price));
        rows.addRow({price.model, amount(price.input), amount(price.cacheRead), amount(price.cacheWrite),
                     amount(price.output), ""});
        if (const auto &dearer = price.longPrompt)
            rows.addRow({"", amount(dearer->input), amount(dearer->cacheRead), amount(dearer->cacheWrite),
                         amount(dearer->output), std::to_string(dearer->aboveTokens) + " tokens in"});
    }
    if (session.json()) {
        session.print(out);
        return exitOk;
    }
    std::printf("%s, of %s: %s.\nDollars per million tokens.\n\n%s", table->file.c_str(), table->date.c_str(),
                table->source.c_str(), rows.text().c_str());
    return exitOk;
}

void addAsk(CLI::App &group, Session &session)
{
    const auto options = std::make_shared<AskOptions>();
    CLI::App *verb = session.addVerb(group, "ask", "Ask an author one question, within a budget",
                                     [&session, options] { return ask(session, *options); });
    verb->footer(
        "The reply goes to stdout, what it cost to stderr. Keys: ANTHROPIC_API_KEY, OPENAI_API_KEY; "
        "KLINEAGE_LOCAL_API_KEY for a server on this machine or an own host. What goes to a model with "
        "each question, and own hosts: ~/.config/klineage/models.toml (core/llm/README.md).");
    verb->add_option("prompt", options->promptFile, "File with the prompt; - is stdin")
        ->capture_default_str();
    verb->add_option("--provider", options->provider, "Who answers")
        ->required()
        ->check(CLI::IsMember(llm::providerNames()));
    verb->add_option("--model", options->model, "As the server names it");
    verb->add_option("--system", options->systemFile, "File with the system prompt");
    verb->add_option("--cap", options->cap, "Dollars that it may cost at most")
        ->check(CLI::Range(0.0, 1e6))
        ->capture_default_str();
    verb->add_option("--max-tokens", options->maxTokens, "Limit of output tokens")
        ->check(CLI::Range(1, llm::maxOutputTokensLimit))
        ->capture_default_str();
    addServerOptions(*verb, options->baseUrl, options->toServer);
    verb->add_option("--paid", options->paid, "Whether replies cost the table's prices")
        ->check(CLI::IsMember({"yes", "no"}));
    verb->add_option("--command", options->command, "exec: the program that answers, run by sh");
    verb->add_option("--transcript", options->transcript, "replay: a transcript.jsonl");
    verb->add_option("--desk", options->desk, "manual: the folder for request-N.md and reply-N.md");
    verb->add_option(
        "--record", options->record,
        "Existing folder for transcript.jsonl and ledger.jsonl; what is recorded there is answered from there");
    verb->add_flag(
        "--stream", options->stream,
        "Print the reply as it comes; in a terminal it always is. A piece that came to nothing stays");
    verb->add_flag("--estimate", options->estimateOnly, "Say what it can cost, and ask nothing");
}

} // namespace

void addLlmCommands(CLI::App &app, Session &session)
{
    CLI::App *group = Session::addGroup(app, "llm", "Language models and what they cost");
    addAsk(*group, session);
    const auto asToml = std::make_shared<bool>(false);
    CLI::App *prices = session.addVerb(*group, "prices", "The price table that applies here",
                                       [&session, asToml] { return listPrices(session, *asToml); });
    prices->add_flag("--toml", *asToml, "As a prices.toml to edit");
}

} // namespace klineage::cli
