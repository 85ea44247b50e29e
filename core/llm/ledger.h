// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/base/result.h"
#include "core/files/jsonlines.h"
#include "core/llm/message.h"

#include <nlohmann/json_fwd.hpp>

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>

namespace klineage::llm {

/// What a run has spent: ledger.jsonl, append-only, of lines {"reserve": …} and {"settle": …}. A reservation that was never settled
/// (a kill in between) counts in full, because the server may have charged for it. Dollars are kept in whole micro-dollars, rounded up,
/// so that sums have no rounding and nothing is understated. Spent and reserved together never pass the cap.
/// One writer at a time: whoever opens it holds the run's lock.
class Ledger
{
public:
    /// The file may be missing. InvalidInput when a line is none of the ledger's: money is not guessed.
    [[nodiscard]] static Result<Ledger> open(const std::filesystem::path &file, double capDollars);

    /// The same of a text that is already in memory; where is used in messages, and nothing can be appended.
    [[nodiscard]] static Result<Ledger> parse(std::string_view text, const std::string &where,
                                              double capDollars);

    [[nodiscard]] double capDollars() const;
    [[nodiscard]] double spentDollars() const;    ///< settled
    [[nodiscard]] double reservedDollars() const; ///< not settled
    [[nodiscard]] double leftDollars() const;     ///< cap - spent - reserved, never below 0
    [[nodiscard]] const Usage &usage() const;     ///< tokens, settled
    [[nodiscard]] int requests() const;           ///< settled

    /// Sets aside the most that a request can cost. ErrorCode::Budget when that would pass the cap; then nothing is written.
    [[nodiscard]] Result<std::string> reserve(double dollars, const std::string &purpose);
    /// What it did cost, at most the reservation (Internal otherwise; it then goes on counting in full); gives back the rest.
    /// note: why nothing came of it; may be empty.
    [[nodiscard]] Status settle(const std::string &reservation, double dollars, const Usage &usage,
                                const std::string &note = {});
    [[nodiscard]] bool knows(const std::string &reservation) const;  ///< settled or not
    [[nodiscard]] bool isOpen(const std::string &reservation) const; ///< not settled
    /// Writes down what another record proves to have been paid, whatever the cap says.
    [[nodiscard]] Status adopt(const std::string &reservation, double dollars, const Usage &usage);

private:
    struct Reservation {
        std::int64_t micro = 0;
        bool settled = false;
    };
    static Result<Ledger> withCap(double capDollars);
    Status readLines(const files::Lines &lines, const std::string &where);
    Status readLine(std::string_view line, const std::string &where);
    void applySettlement(Reservation &reservation, std::int64_t micro, const Usage &usage);
    Status append(const char *what, const nlohmann::ordered_json &entry) const;

    std::filesystem::path m_file;
    std::int64_t m_capMicro = 0;
    std::int64_t m_spentMicro = 0;
    std::int64_t m_openMicro = 0;
    std::map<std::string, Reservation> m_reservations;
    Usage m_usage;
    int m_requests = 0;
};

inline constexpr std::int64_t maxLedgerMicro = 1'000'000'000'000'000; ///< 10^9 dollars
/// Whole micro-dollars, rounded up; what only the rounding of doubles put above a whole one is not rounded up.
[[nodiscard]] std::int64_t microDollars(double dollars);

} // namespace klineage::llm
