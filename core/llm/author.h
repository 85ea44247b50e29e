// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/llm/ledger.h"
#include "core/llm/prices.h"
#include "core/llm/provider.h"

#include <filesystem>
#include <span>

namespace klineage::llm {

/// One exchange of a run: a line of transcript.jsonl.
struct Exchange {
    int number = 0; ///< 1, 2, … within the run
    std::string time;
    std::string provider;
    std::string fingerprint; ///< of the request
    Request request;
    Reply reply;
    double dollars = 0;
    std::string reservation; ///< in the ledger
};

/// One line, no newline. before: the lines above it, in their order. What the request has in common with one of them is named and
/// not written again, so that a chat stands in its transcript once.
[[nodiscard]] std::string writeExchange(const Exchange &exchange, std::span<const Exchange> before = {});
[[nodiscard]] Result<Exchange> parseExchange(std::string_view line, const std::string &where,
                                             std::span<const Exchange> before = {});
/// All of a transcript.jsonl, numbered 1, 2, …; NotFound when there is no such file.
[[nodiscard]] Result<std::vector<Exchange>> readTranscript(const std::filesystem::path &file);
/// "Exchange 3 of 'file' answered another prompt: …" (Conflict) when the request has not the fingerprint of the recorded one.
[[nodiscard]] Status checkSamePrompt(const Exchange &recorded, const Request &request,
                                     const std::filesystem::path &file);

/// Asks a provider within a budget and writes everything down, so that a run can be stopped at any instant and gone on with:
/// the n-th ask() of a run whose transcript has an n-th exchange answers from there, free of charge, when the fingerprints agree
/// (a different prompt is ErrorCode::Conflict, naming both); after the last one the provider is asked.
/// Order of writing: reserve in the ledger → ask → transcript → settle. A kill in between costs at most the reservation; an exchange
/// that reached the transcript is settled when the folder is opened again.
/// A request that came to nothing but may have been charged (a broken stream) is asked again, under a reservation of its own.
/// What is returned is what was written, so that the first run and a replay see the same bytes. One thread at a time.
class Author
{
public:
    /// Reads transcript.jsonl and ledger.jsonl in folder, which must exist; either may be missing.
    [[nodiscard]] static Result<Author> open(const std::filesystem::path &folder, Provider &provider,
                                             const PriceTable &prices, double capDollars);

    /// How often a request that may have been charged for nothing is asked again, and the pause before the first time (it doubles).
    void setRetries(int retries, double pauseSeconds);

    /// Hears of each time that a request is asked again.
    void setNotice(NoticeCallback notice);

    /// ErrorCode::Budget when the request could pass the cap: nothing was sent.
    /// onText hears what the provider streams, and nothing while replaying; what comes after a failed attempt is from the beginning again.
    [[nodiscard]] Result<Exchange> ask(const Request &request, std::stop_token stop = {},
                                       const TextCallback &onText = {});
    [[nodiscard]] const Ledger &ledger() const;
    [[nodiscard]] bool isReplaying() const; ///< the next ask() answers from the transcript

    Author(Author &&) noexcept;
    Author &operator=(Author &&) noexcept;
    ~Author();

private:
    struct Private;
    explicit Author(std::unique_ptr<Private> d);
    std::unique_ptr<Private> m_d;
};

} // namespace klineage::llm
