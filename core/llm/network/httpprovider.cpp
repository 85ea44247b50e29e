// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/llm/network/httpprovider.h"

#include "core/base/numbertext.h"
#include "core/llm/network/replyreader.h"
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

/// Seconds for a person: whole ones from 10 on.
std::string secondsText(double seconds)
{
    return fixedText(seconds, seconds < 10 ? 1 : 0) + " s";
}

std::string idText(std::string_view sent, std::string_view secret)
{
    constexpr std::size_t longest = 200;
    return validUtf8(scrubbed(sent, secret).substr(0, longest));
}

std::string withStop(const std::string &sentence)
{
    const bool ends = sentence.ends_with('.') || sentence.ends_with('!') || sentence.ends_with('?');
    return ends ? sentence : sentence + '.';
}

/// People give a base URL with /v1 or without; a path that begins with it comes behind both.
std::string endpoint(const std::string &base, std::string_view path)
{
    constexpr std::string_view version = "/v1";
    if (base.ends_with(version) && path.starts_with("/v1/"))
        path.remove_prefix(version.size());
    return base + std::string(path);
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
        refused.detail = printable(std::string_view(result.errorBody).substr(0, 500));
    if (result.status == 401 || result.status == 403)
        refused.detail = std::string("Look at the key: ") + keyVariable(name(), m_url.isOwn) + ".";
    if (result.status == 404 && !m_options.baseUrl.empty())
        refused.detail =
            "It was asked at " + endpoint(m_url.text, m_dialect->path())
            + ". The base URL of most servers ends in /v1, and the model has to be one that it has.";
    return refused;
}

HttpProvider::Attempt HttpProvider::tryOnce(const HttpRequest &request, const std::string &secret,
                                            const std::stop_token &stop, const TextCallback &onText) const
{
    ReplyReader reader(*m_dialect, secret, onText);
    HttpResult result =
        httpPost(request, m_options.limits, stop, [&](std::string_view bytes) { return reader.take(bytes); });
    result.errorBody = scrubbed(result.errorBody, secret); // before it is cut
    Attempt attempt;
    if (result.status != 0 && !isSuccess(result.status)) {
        attempt.failure.error = refusal(result);
        attempt.again = isTemporary(result.status, parseApiError(result.errorBody));
        attempt.retryAfter = result.retryAfterSeconds;
        return attempt;
    }
    // A reply that has all that it needs is kept, whatever became of the connection then.
    if (result.status != 0 && (!result.problem || result.isCutShort)) {
        const Status whole = reader.finish();
        if (whole) {
            attempt.reply = reader.takeReply();
            if (!result.requestId.empty())
                attempt.reply->requestId = idText(result.requestId, secret);
            return attempt;
        }
        if (!result.problem || whole.error().code == ErrorCode::Unavailable)
            result.problem = whole.error();
    }
    attempt.failure.error = result.problem.value_or(
        Error{ErrorCode::Protocol, "The server ended its answer before the reply was whole.", {}});
    attempt.failure.mayBeCharged = result.bodySent;
    attempt.again = !result.bodySent && result.canBeRepeated;
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
    HttpRequest post{endpoint(m_url.text, m_dialect->path()), m_dialect->headers(*secret),
                     m_dialect->body(request), !m_url.isOwn};
    const auto began = std::chrono::steady_clock::now();
    const Deadline deadline = Deadline::in(m_options.retry.totalSeconds);
    for (int attempt = 1;; ++attempt) {
        Attempt made = tryOnce(post, *secret, stop, onText);
        if (made.reply) {
            Reply &reply = *made.reply;
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
