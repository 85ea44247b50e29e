// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/llm/network/httpprovider.h"

#include "core/base/numbertext.h"
#include "core/process/deadline.h"

namespace klineage::llm {

using process::Deadline;

/// What one request over the network came to.
struct HttpProvider::Attempt {
    std::optional<Reply> reply;
    ProviderFailure failure;
    bool again = false;    ///< certainly not charged, and another time may do
    double retryAfter = 0; ///< seconds that the server asks to wait
};

namespace {

bool isTemporary(int status, const std::optional<ApiError> &error)
{
    if (error && error->type == "insufficient_quota") // a 429 that no waiting mends
        return false;
    return status == 408 || status == 409 || status == 429 || status >= 500;
}

ErrorCode codeOf(int status)
{
    if (status == 404)
        return ErrorCode::NotFound;
    if (status == 400 || status == 413 || status == 422)
        return ErrorCode::InvalidInput;
    return ErrorCode::Unavailable;
}

/// A reply of the longest text, every character of it escaped, and room for what is around it.
constexpr std::size_t maxWholeAnswer = 8 * maxReplyBytes;

/// Seconds for a person: whole ones from 10 on.
std::string secondsText(double seconds)
{
    return fixedText(seconds, seconds < 10 ? 1 : 0) + " s";
}

std::string withStop(const std::string &sentence)
{
    const bool ends = sentence.ends_with('.') || sentence.ends_with('!') || sentence.ends_with('?');
    return ends ? sentence : sentence + '.';
}

} // namespace

HttpProvider::HttpProvider(std::unique_ptr<Dialect> dialect, BaseUrl url, NetworkOptions options)
    : m_dialect(std::move(dialect))
    , m_url(std::move(url))
    , m_options(std::move(options))
    , m_random(m_options.seed)
{}

Result<std::unique_ptr<HttpProvider>> HttpProvider::create(std::unique_ptr<Dialect> dialect,
                                                           NetworkOptions options)
{
    Result<BaseUrl> url =
        parseBaseUrl(options.baseUrl.empty() ? dialect->defaultBaseUrl() : options.baseUrl, options.ownHosts);
    if (!url)
        return tl::unexpected(url.error());
    return std::unique_ptr<HttpProvider>(
        new HttpProvider(std::move(dialect), std::move(*url), std::move(options)));
}

bool HttpProvider::isPaid() const
{
    return m_options.paid.value_or(!m_url.isOwn);
}

Result<std::string> HttpProvider::key() const
{
    Result<std::string> key = findKey(name(), m_url.isOwn, m_options.key);
    if (key && key->empty() && !m_url.isOwn)
        return fail(ErrorCode::Unavailable, "There is no API key for '" + name() + "'.",
                    std::string("Set ") + keyVariable(name(), false) + " in the environment.");
    return key;
}

Error HttpProvider::refusal(const HttpResult &result) const
{
    const std::optional<ApiError> error = parseApiError(result.errorBody);
    const std::string status = std::to_string(result.status);
    Error refused{codeOf(result.status), {}, {}};
    if (result.status >= 300 && result.status < 400) {
        refused.message = "The server " + m_url.host + " sent the request elsewhere (" + status
                          + "), which is not followed; give the right base URL.";
        return refused;
    }
    const std::string type = error && !error->type.empty() ? ", " + error->type : std::string();
    refused.message = "The server " + m_url.host + " refused the request (" + status + type + ")";
    refused.message += error && !error->message.empty() ? ": " + withStop(error->message) : ".";
    if (!error)
        refused.detail = validUtf8(std::string_view(result.errorBody).substr(0, 500));
    if (result.status == 401 || result.status == 403)
        refused.detail = std::string("Look at the key: ") + keyVariable(name(), m_url.isOwn) + ".";
    return refused;
}

HttpProvider::Attempt HttpProvider::tryOnce(const HttpRequest &request, const std::stop_token &stop,
                                            const TextCallback &onText) const
{
    const std::unique_ptr<StreamDecoder> decoder = m_dialect->decoder();
    SseParser parser;
    bool whole = false;
    std::string notStreamed;
    bool begun = false;
    const auto receive = [&](std::string_view bytes) -> Result<bool> {
        // No line of a stream begins with a brace.
        const std::size_t first = begun ? 0 : bytes.find_first_not_of(" \t\r\n");
        if (!notStreamed.empty() || (!begun && first != std::string_view::npos && bytes[first] == '{')) {
            notStreamed += bytes;
            if (notStreamed.size() > maxWholeAnswer)
                return fail(ErrorCode::Protocol, "The server's answer is longer than any reply.");
            return false;
        }
        begun = begun || first != std::string_view::npos;
        const Status fed = parser.feed(bytes, [&](const SseEvent &event) -> Status {
            if (whole)
                return {};
            const Result<bool> taken = decoder->take(event, onText);
            if (!taken)
                return tl::unexpected(taken.error());
            whole = *taken;
            return {};
        });
        if (!fed)
            return tl::unexpected(fed.error());
        return whole;
    };
    HttpResult result = httpPost(request, m_options.limits, stop, receive);
    if (!notStreamed.empty() && result.status == 200 && !result.problem) {
        const Status taken = decoder->takeWhole(notStreamed, onText);
        whole = taken.has_value();
        if (!taken)
            result.problem = taken.error();
    }
    Attempt attempt;
    if (result.status != 0 && result.status != 200) {
        attempt.failure.error = refusal(result);
        attempt.again = isTemporary(result.status, parseApiError(result.errorBody));
        attempt.retryAfter = result.retryAfterSeconds;
    } else if (whole || (result.status == 200 && !result.problem && decoder->isWholeAtEnd())) {
        attempt.reply = std::move(decoder->reply());
        if (!result.requestId.empty())
            attempt.reply->requestId = validUtf8(result.requestId);
    } else {
        attempt.failure.error = result.problem.value_or(
            Error{ErrorCode::Protocol, "The server ended its answer before the reply was whole.", {}});
        attempt.failure.mayBeCharged = result.bodySent;
        attempt.again = !result.bodySent && result.canBeRepeated;
    }
    return attempt;
}

tl::expected<Reply, ProviderFailure> HttpProvider::ask(const Request &request, std::stop_token stop,
                                                       const TextCallback &onText)
{
    const auto refuse = [](Error error) {
        return tl::unexpected(ProviderFailure{std::move(error), {}, false});
    };
    if (request.model.empty())
        return refuse({ErrorCode::InvalidInput, "The request names no model of '" + name() + "'.", {}});
    const Result<std::string> secret = key();
    if (!secret)
        return refuse(secret.error());
    HttpRequest post{m_url.text + m_dialect->path(), m_dialect->headers(*secret), m_dialect->body(request),
                     !m_url.isOwn};
    const auto began = std::chrono::steady_clock::now();
    const Deadline deadline = Deadline::in(m_options.retry.totalSeconds);
    for (int attempt = 1;; ++attempt) {
        Attempt made = tryOnce(post, stop, onText);
        if (made.reply) {
            Reply &reply = *made.reply;
            for (std::string *text : {&reply.text, &reply.model, &reply.requestId})
                *text = scrubbed(*text, *secret);
            reply.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
            return reply;
        }
        made.failure.error = scrubbed(made.failure.error, *secret);
        const double delay = retryDelay(m_options.retry, attempt, made.retryAfter, m_random);
        const bool hasTime = deadline.secondsLeft() > delay;
        const bool tries = made.again && attempt < m_options.retry.attempts && hasTime;
        if (tries && m_options.notice && !stop.stop_requested())
            m_options.notice(made.failure.error.message + " It is asked again in " + secondsText(delay) + " ("
                             + std::to_string(attempt + 1) + " of " + std::to_string(m_options.retry.attempts)
                             + "); nothing was charged.");
        if (tries && sleepFor(delay, stop))
            continue;
        if (made.again && stop.stop_requested())
            return refuse({ErrorCode::Cancelled, "The request was stopped while it waited to be sent again.",
                           made.failure.error.message});
        if (made.again && attempt > 1)
            made.failure.error.message +=
                " It was sent " + std::to_string(attempt) + " times, with pauses in between.";
        return tl::unexpected(made.failure);
    }
}

} // namespace klineage::llm
