// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/llm/author.h"

#include "core/base/numbertext.h"
#include "core/files/jsonlines.h"
#include "core/files/utctime.h"
#include "core/llm/messagejson.h"
#include "core/llm/network/retry.h"

#include <cmath>
#include <utility>

namespace klineage::llm {

namespace fs = std::filesystem;

struct Author::Private {
    fs::path transcriptFile;
    Provider *provider = nullptr;
    PriceTable prices;
    Ledger ledger;
    std::vector<Exchange> exchanges;
    std::size_t next = 0; ///< of exchanges: the one that answers the next ask()
    int retries = 2;
    double pauseSeconds = 2;
    NoticeCallback notice;

    Status settleWritten();
    Result<Exchange> replay(const Request &request);
    Result<const Price *> priceOf(const Request &request) const;
    /// One request under one reservation. again: it may have been charged for nothing, so another try is worth its money.
    Result<Exchange> askOnce(const Request &request, const Price *price, std::stop_token stop,
                             const TextCallback &onText, bool &again);
    Status settleFailure(const std::string &reservation, const ProviderFailure &failure, const Price *price,
                         double most);
    Result<Exchange> keep(Exchange exchange, double most, const Price *price);
};

namespace {

/// The usage of a reply that costs money must account for the text that came and the prompt that went, within what was set aside.
bool isBelievable(const Reply &reply, const Price *price, double most)
{
    if (!reply.usageKnown || !isSane(reply.usage))
        return false;
    if (!price)
        return true;
    const Usage &usage = reply.usage;
    const bool counted =
        usage.input + usage.cacheRead + usage.cacheWrite > 0 && (usage.output > 0 || reply.text.empty());
    return counted && microDollars(dollars(*price, usage)) <= microDollars(most);
}

/// As it will be written down; a line of the transcript has at most 16 MiB.
constexpr std::size_t maxWrittenRequest = std::size_t{8} << 20;
constexpr std::size_t maxWrittenReply = std::size_t{7} << 20;

void clip(std::string &text)
{
    constexpr std::size_t most = 256;
    if (text.size() > most)
        text = validUtf8(std::string_view(text).substr(0, most));
}

bool isBroken(const Error &error)
{
    return error.code == ErrorCode::Protocol || error.code == ErrorCode::Timeout
           || error.code == ErrorCode::Unavailable;
}

} // namespace

Author::Author(std::unique_ptr<Private> d)
    : m_d(std::move(d))
{}
Author::Author(Author &&) noexcept = default;
Author &Author::operator=(Author &&) noexcept = default;
Author::~Author() = default;

Result<Author> Author::open(const fs::path &folder, Provider &provider, const PriceTable &prices,
                            double capDollars)
{
    auto d = std::make_unique<Private>();
    d->transcriptFile = folder / "transcript.jsonl";
    d->provider = &provider;
    d->prices = prices;
    Result<Ledger> ledger = Ledger::open(folder / "ledger.jsonl", capDollars);
    if (!ledger)
        return tl::unexpected(ledger.error());
    d->ledger = std::move(*ledger);
    Result<std::vector<Exchange>> recorded = readTranscript(d->transcriptFile);
    if (!recorded && recorded.error().code != ErrorCode::NotFound)
        return tl::unexpected(recorded.error());
    if (recorded)
        d->exchanges = std::move(*recorded);
    if (Status settled = d->settleWritten(); !settled)
        return tl::unexpected(settled.error());
    return Author(std::move(d));
}

/// A kill between the transcript and the settlement left the reservation open, although what it paid for is there.
Status Author::Private::settleWritten()
{
    for (const Exchange &exchange : exchanges) {
        const std::string &reservation = exchange.reservation;
        Status done;
        if (reservation.empty())
            continue;
        if (!ledger.knows(reservation))
            done = ledger.adopt(reservation, exchange.dollars, exchange.reply.usage);
        else if (ledger.isOpen(reservation))
            done = ledger.settle(reservation, exchange.dollars, exchange.reply.usage);
        if (!done)
            return done;
    }
    return {};
}

Result<Exchange> Author::Private::replay(const Request &request)
{
    const Exchange &recorded = exchanges[next];
    if (Status same = checkSamePrompt(recorded, request, transcriptFile); !same)
        return tl::unexpected(same.error());
    ++next;
    return recorded;
}

Result<const Price *> Author::Private::priceOf(const Request &request) const
{
    if (!provider->isPaid())
        return nullptr;
    if (const Price *price = prices.find(request.model))
        return price;
    return tl::unexpected(unknownPrice(prices, request.model));
}

Status Author::Private::settleFailure(const std::string &reservation, const ProviderFailure &failure,
                                      const Price *price, double most)
{
    const bool counted = !failure.mayBeCharged && failure.usage && isSane(*failure.usage);
    const Usage used = counted ? *failure.usage : Usage{};
    double cost = failure.mayBeCharged ? most : 0;
    if (counted && price)
        cost = std::min(most, dollars(*price, used));
    return ledger.settle(reservation, cost, used, validUtf8(failure.error.message));
}

Result<Exchange> Author::Private::keep(Exchange exchange, double most, const Price *price)
{
    Reply &reply = exchange.reply;
    reply.usageKnown = isBelievable(reply, price, most);
    if (!reply.usageKnown)
        reply.usage = {};
    exchange.dollars = price ? reply.usageKnown ? dollars(*price, reply.usage) : most : 0;
    const std::string line = writeExchange(exchange, exchanges);
    Result<Exchange> written = parseExchange(line, "the exchange", exchanges);
    if (!written)
        return tl::unexpected(written.error());
    if (Status appended = files::appendLine(transcriptFile, line); !appended)
        return tl::unexpected(appended.error());
    // It is not passed by until it is settled: after an error here, the same question is answered from the record.
    exchanges.push_back(*written);
    if (Status settled = ledger.settle(written->reservation, written->dollars, written->reply.usage);
        !settled)
        return tl::unexpected(settled.error());
    ++next;
    return written;
}

Result<Exchange> Author::Private::askOnce(const Request &request, const Price *price, std::stop_token stop,
                                          const TextCallback &onText, bool &again)
{
    again = false;
    const double most = price ? mostDollars(*price, request) : 0;
    const Result<std::string> reservation = ledger.reserve(most, request.purpose);
    if (!reservation)
        return tl::unexpected(reservation.error());
    tl::expected<Reply, ProviderFailure> reply = provider->ask(request, stop, onText);
    if (reply
        && (reply->text.size() > maxReplyBytes
            || files::oneLine(nlohmann::json(reply->text)).size() > maxWrittenReply))
        reply = tl::unexpected(
            ProviderFailure{{ErrorCode::Protocol, "The reply is longer than 2 MiB.", {}}, {}, true});
    if (!reply) {
        if (Status settled = settleFailure(*reservation, reply.error(), price, most); !settled)
            return tl::unexpected(settled.error());
        again = reply.error().mayBeCharged && isBroken(reply.error().error);
        return tl::unexpected(reply.error().error);
    }
    Exchange exchange;
    exchange.number = static_cast<int>(exchanges.size()) + 1;
    exchange.time = files::nowUtc();
    exchange.provider = provider->name();
    exchange.fingerprint = fingerprint(request);
    exchange.request = request;
    exchange.reply = std::move(*reply);
    clip(exchange.reply.model);
    clip(exchange.reply.requestId);
    exchange.reservation = *reservation;
    return keep(std::move(exchange), most, price);
}

Result<Exchange> Author::ask(const Request &request, std::stop_token stop, const TextCallback &onText)
{
    if (Status sound = checkRequest(request); !sound)
        return tl::unexpected(sound.error());
    if (files::oneLine(toJson(request)).size() > maxWrittenRequest)
        return fail(ErrorCode::InvalidInput,
                    "Cannot ask: the prompt is longer than 8 MiB when it is written down.");
    if (isReplaying())
        return m_d->replay(request);
    const Result<const Price *> price = m_d->priceOf(request);
    if (!price)
        return tl::unexpected(price.error());
    Result<Exchange> exchange;
    std::optional<Error> before;
    for (int attempt = 0;; ++attempt) {
        bool again = false;
        exchange = m_d->askOnce(request, *price, stop, onText, again);
        if (exchange || !again || attempt >= m_d->retries)
            break;
        const double pause = m_d->pauseSeconds * std::exp2(attempt);
        if (m_d->notice && !stop.stop_requested())
            m_d->notice(exchange.error().message
                        + " It may have been charged and counts in full; asked again in "
                        + significantText(pause, 2) + " s (" + std::to_string(attempt + 2) + " of "
                        + std::to_string(m_d->retries + 1) + ").");
        if (!sleepFor(pause, stop))
            break;
        before = exchange.error();
    }
    // When no money is left for another try, what went wrong before says more.
    if (!exchange && before && exchange.error().code == ErrorCode::Budget)
        return fail(before->code, before->message, exchange.error().message + '\n' + before->detail);
    return exchange;
}

void Author::setRetries(int retries, double pauseSeconds)
{
    m_d->retries = retries;
    m_d->pauseSeconds = pauseSeconds;
}

void Author::setNotice(NoticeCallback notice)
{
    m_d->notice = std::move(notice);
}

const Ledger &Author::ledger() const
{
    return m_d->ledger;
}

bool Author::isReplaying() const
{
    return m_d->next < m_d->exchanges.size();
}

} // namespace klineage::llm
