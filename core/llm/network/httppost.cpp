// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/llm/network/httppost.h"

#include "core/llm/network/curllibrary.h"
#include "core/process/deadline.h"

#include <algorithm>
#include <memory>

namespace klineage::llm {

using process::Deadline;

namespace {

constexpr std::size_t maxErrorBody = std::size_t{64} << 10;
constexpr std::size_t maxHeaderBytes = std::size_t{256} << 10;

struct ListDeleter {
    void operator()(curl_slist *list) const { curl().slist_free_all(list); }
};
struct EasyDeleter {
    void operator()(CURL *easy) const { curl().easy_cleanup(easy); }
};
struct MultiDeleter {
    void operator()(CURLM *multi) const { curl().multi_cleanup(multi); }
};

/// What libcurl's callbacks work on. They are noexcept: nothing is thrown through C.
struct Transfer {
    const BodyReceiver *receive = nullptr;
    CURL *easy = nullptr;
    HttpResult result;
    std::size_t maxBodyBytes = 0;
    std::size_t bodyBytes = 0;
    std::size_t headerBytes = 0;
    curl_off_t uploaded = 0;
    bool finished = false; ///< the receiver wants no more
    std::chrono::steady_clock::time_point lastByte = std::chrono::steady_clock::now();

    int status() const
    {
        long code = 0;
        curl().easy_getinfo(easy, CURLINFO_RESPONSE_CODE, &code);
        return code < 200 ? 0 : static_cast<int>(code);
    }
    void alive() { lastByte = std::chrono::steady_clock::now(); }
    bool refuse(ErrorCode code, const char *message)
    {
        result.problem = Error{code, message, {}};
        return false;
    }
    bool takeBody(std::string_view bytes);
    bool takeHeader(std::size_t bytes);
};

bool Transfer::takeBody(std::string_view bytes)
{
    alive();
    bodyBytes += bytes.size();
    if (!isSuccess(status())) {
        result.errorBody.append(bytes.substr(0, maxErrorBody - result.errorBody.size()));
        return result.errorBody.size() < maxErrorBody;
    }
    if (bodyBytes > maxBodyBytes)
        return refuse(ErrorCode::Protocol, "The server's answer is longer than any reply.");
    const Result<bool> wanted = (*receive)(bytes);
    if (!wanted)
        result.problem = wanted.error();
    else
        finished = *wanted;
    return wanted && !finished;
}

bool Transfer::takeHeader(std::size_t bytes)
{
    alive();
    headerBytes += bytes;
    if (headerBytes > maxHeaderBytes)
        return refuse(ErrorCode::Protocol, "The headers of the server's answer are longer than any.");
    return true;
}

std::size_t onBody(char *bytes, std::size_t, std::size_t count, void *user) noexcept
{
    try {
        return static_cast<Transfer *>(user)->takeBody({bytes, count}) ? count : CURL_WRITEFUNC_ERROR;
    } catch (...) {
        static_cast<Transfer *>(user)->result.problem = Error{ErrorCode::Internal, "Out of memory.", {}};
        return CURL_WRITEFUNC_ERROR;
    }
}

std::size_t onHeader(char *, std::size_t, std::size_t count, void *user) noexcept
{
    try {
        return static_cast<Transfer *>(user)->takeHeader(count) ? count : 0;
    } catch (...) {
        return 0;
    }
}

int onProgress(void *user, curl_off_t, curl_off_t, curl_off_t, curl_off_t uploaded) noexcept
{
    auto *transfer = static_cast<Transfer *>(user);
    if (uploaded != transfer->uploaded)
        transfer->alive();
    transfer->uploaded = uploaded;
    return 0;
}

void setOptions(CURL *easy, const HttpRequest &request, const HttpLimits &limits, Transfer &transfer,
                curl_slist *headers, char *errorText)
{
    curl().easy_setopt(easy, CURLOPT_URL, request.url.c_str());
    curl().easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https");
    curl().easy_setopt(easy, CURLOPT_FOLLOWLOCATION, 0L);
    curl().easy_setopt(easy, CURLOPT_SSL_VERIFYPEER, 1L);
    curl().easy_setopt(easy, CURLOPT_SSL_VERIFYHOST, 2L);
    curl().easy_setopt(easy, CURLOPT_NETRC, static_cast<long>(CURL_NETRC_IGNORED));
    curl().easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
    curl().easy_setopt(easy, CURLOPT_QUICK_EXIT, 1L); // a stop does not wait for a name to be looked up
    curl().easy_setopt(easy, CURLOPT_FRESH_CONNECT, 1L);
    curl().easy_setopt(easy, CURLOPT_FORBID_REUSE, 1L);
    if (!request.throughProxy)
        curl().easy_setopt(easy, CURLOPT_PROXY, "");
    curl().easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS, static_cast<long>(limits.connectSeconds * 1000));
    curl().easy_setopt(easy, CURLOPT_ACCEPT_ENCODING,
                       "identity"); // what comes packed all the same is unpacked
    curl().easy_setopt(easy, CURLOPT_HTTPHEADER, headers);
    curl().easy_setopt(easy, CURLOPT_POST, 1L);
    curl().easy_setopt(easy, CURLOPT_POSTFIELDSIZE_LARGE, static_cast<curl_off_t>(request.body.size()));
    curl().easy_setopt(easy, CURLOPT_POSTFIELDS, request.body.data());
    curl().easy_setopt(easy, CURLOPT_WRITEFUNCTION, onBody);
    curl().easy_setopt(easy, CURLOPT_WRITEDATA, &transfer);
    curl().easy_setopt(easy, CURLOPT_HEADERFUNCTION, onHeader);
    curl().easy_setopt(easy, CURLOPT_HEADERDATA, &transfer);
    curl().easy_setopt(easy, CURLOPT_NOPROGRESS, 0L);
    curl().easy_setopt(easy, CURLOPT_XFERINFOFUNCTION, onProgress);
    curl().easy_setopt(easy, CURLOPT_XFERINFODATA, &transfer);
    curl().easy_setopt(easy, CURLOPT_ERRORBUFFER, errorText);
}

/// Runs the transfer until libcurl is done with it, or an Error of ours: stopped or out of time.
Result<CURLcode> drive(CURLM *multi, const Transfer &transfer, const HttpLimits &limits,
                       const std::stop_token &stop)
{
    const std::stop_callback wake(stop, [multi] { curl().multi_wakeup(multi); });
    const Deadline total = Deadline::in(limits.totalSeconds);
    for (int running = 1; running > 0;) {
        // As of before what has come is read: a machine that was busy elsewhere, or asleep, is no silent server.
        const auto asOf = std::chrono::steady_clock::now();
        const bool isLate = total.passed();
        if (curl().multi_perform(multi, &running) != CURLM_OK)
            return fail(ErrorCode::Internal, "libcurl refused to work.");
        int left = 0;
        while (const CURLMsg *message = curl().multi_info_read(multi, &left)) {
            if (message->msg == CURLMSG_DONE)
                return message->data.result;
        }
        if (stop.stop_requested())
            return fail(ErrorCode::Cancelled, "The request was stopped.");
        const double silent = std::chrono::duration<double>(asOf - transfer.lastByte).count();
        if (silent >= limits.idleSeconds)
            return fail(ErrorCode::Timeout, "The server has been silent for too long.");
        if (isLate)
            return fail(ErrorCode::Timeout, "The reply takes longer than it may.");
        const double wait = std::clamp(std::min(limits.idleSeconds - silent, total.secondsLeft()), 0.0, 1.0);
        curl().multi_poll(multi, nullptr, 0, static_cast<int>(wait * 1000) + 1, nullptr);
    }
    return fail(ErrorCode::Internal, "libcurl lost the transfer.");
}

bool isOfTheConnection(CURLcode code)
{
    switch (code) {
    case CURLE_COULDNT_RESOLVE_HOST:
    case CURLE_COULDNT_RESOLVE_PROXY:
    case CURLE_COULDNT_CONNECT:
    case CURLE_OPERATION_TIMEDOUT:
    case CURLE_SSL_CONNECT_ERROR:
    case CURLE_GOT_NOTHING:
    case CURLE_SEND_ERROR:
    case CURLE_RECV_ERROR:
    case CURLE_HTTP2:
    case CURLE_HTTP2_STREAM:
        return true;
    default:
        return false;
    }
}

/// Of the answer itself, not of an interim one; empty when it has none of the name.
std::string headerOf(CURL *easy, const char *name)
{
    constexpr int lastAnswer = -1;
    curl_header *header = nullptr;
    if (curl().easy_header(easy, name, 0, CURLH_HEADER, lastAnswer, &header) != CURLHE_OK)
        return {};
    return header->value;
}

void conclude(const Result<CURLcode> &ended, Transfer &transfer, const char *errorText, std::size_t bodyBytes)
{
    HttpResult &result = transfer.result;
    curl_off_t uploaded = 0;
    curl().easy_getinfo(transfer.easy, CURLINFO_SIZE_UPLOAD_T, &uploaded);
    result.status = transfer.status();
    result.requestId = headerOf(transfer.easy, "request-id");
    if (result.requestId.empty())
        result.requestId = headerOf(transfer.easy, "x-request-id");
    curl_off_t retryAfter = 0;
    curl().easy_getinfo(transfer.easy, CURLINFO_RETRY_AFTER, &retryAfter);
    result.retryAfterSeconds = static_cast<double>(std::max<curl_off_t>(0, retryAfter));
    result.bodySent = isSuccess(result.status) || static_cast<std::size_t>(uploaded) >= bodyBytes;
    if (transfer.finished || result.problem)
        return;
    if (!ended) {
        result.problem = ended.error();
        result.isCutShort = ended.error().code == ErrorCode::Timeout;
        return;
    }
    if (*ended == CURLE_OK)
        return;
    result.isCutShort = true;
    const std::string why = *errorText ? errorText : curl().easy_strerror(*ended);
    result.problem = Error{*ended == CURLE_OPERATION_TIMEDOUT ? ErrorCode::Timeout : ErrorCode::Protocol,
                           "The connection failed: " + why + '.',
                           {}};
    result.canBeRepeated = isOfTheConnection(*ended);
}

} // namespace

bool isSuccess(int status)
{
    return status >= 200 && status < 300;
}

HttpResult httpPost(const HttpRequest &request, const HttpLimits &limits, std::stop_token stop,
                    const BodyReceiver &receive)
{
    Transfer transfer;
    if (const Status loaded = loadCurl(); !loaded) {
        transfer.result.problem = loaded.error();
        return transfer.result;
    }
    transfer.receive = &receive;
    transfer.maxBodyBytes = limits.maxBodyBytes;
    std::unique_ptr<curl_slist, ListDeleter> headers;
    std::vector<std::string> lines = request.headers;
    lines.insert(lines.end(), {"Content-Type: application/json", "Accept: text/event-stream", "Expect:"});
    for (const std::string &line : lines) {
        if (curl_slist *longer = curl().slist_append(headers.get(), line.c_str())) {
            (void)headers.release();
            headers.reset(longer);
        }
    }
    const std::unique_ptr<CURLM, MultiDeleter> multi(curl().multi_init());
    const std::unique_ptr<CURL, EasyDeleter> easy(multi ? curl().easy_init() : nullptr);
    if (!easy) {
        transfer.result.problem = Error{ErrorCode::Internal, "libcurl could not be started.", {}};
        return transfer.result;
    }
    transfer.easy = easy.get();
    char errorText[CURL_ERROR_SIZE] = "";
    setOptions(easy.get(), request, limits, transfer, headers.get(), errorText);
    curl().multi_add_handle(multi.get(), easy.get());
    const Result<CURLcode> ended = drive(multi.get(), transfer, limits, stop);
    conclude(ended, transfer, errorText, request.body.size());
    curl().multi_remove_handle(multi.get(), easy.get());
    return std::move(transfer.result);
}

} // namespace klineage::llm
