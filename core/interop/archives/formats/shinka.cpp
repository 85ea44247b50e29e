// SPDX-License-Identifier: GPL-3.0-or-later
// ShinkaEvolve keeps a search in an SQLite file: the table programs, and metadata_store with the best program's id. The file may be
// anybody's. It is opened as one that nobody writes, and all that a file can make SQLite do is off: views, triggers, functions of its
// schema, virtual tables. Only columns that PRAGMA table_info lists are read, which leaves generated ones out, and each row by itself, so that one
// that is broken costs nothing but itself.
#include "core/files/filehandle.h"
#include "core/files/sha256.h"
#include "core/interop/archives/archivetext.h"
#include "core/interop/archives/formats/readers.h"

#include <fcntl.h>
#include <unistd.h>

#include <cctype>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <memory>
#include <set>

#if KLINEAGE_HAVE_SQLITE
#include <sqlite3.h>
#endif

namespace klineage::interop {

namespace fs = std::filesystem;

namespace {

constexpr std::string_view sqliteMagic{"SQLite format 3\0", 16};

} // namespace

bool isSqliteFile(const fs::path &file)
{
    std::error_code ignored;
    if (!fs::is_regular_file(fs::symlink_status(file, ignored)))
        return false;
    const FileDescriptor handle = files::openFile(file, O_RDONLY | O_NONBLOCK | O_NOFOLLOW);
    char begin[sqliteMagic.size()];
    return handle && ::read(handle.get(), begin, sizeof begin) == static_cast<ssize_t>(sizeof begin)
           && std::string_view(begin, sizeof begin) == sqliteMagic;
}

#if KLINEAGE_HAVE_SQLITE

namespace {

using nlohmann::json;

tl::unexpected<Error> noDatabase(const fs::path &file, const std::string &why)
{
    return fail(ErrorCode::InvalidInput,
                "Cannot read '" + file.filename().string() + "' as an archive of ShinkaEvolve: " + why);
}

constexpr auto databaseDeadline = std::chrono::seconds(30);
constexpr int maxCellBytes = 64 << 20; ///< of a text, and of a row

struct CloseDatabase {
    void operator()(sqlite3 *database) const { sqlite3_close(database); }
};
struct EndStatement {
    void operator()(sqlite3_stmt *statement) const { sqlite3_finalize(statement); }
};
using DatabaseHandle = std::unique_ptr<sqlite3, CloseDatabase>;
using StatementHandle = std::unique_ptr<sqlite3_stmt, EndStatement>;

/// The name as SQLite's URIs take it: nothing in it is a query or a fragment.
std::string databaseUri(const fs::path &file)
{
    constexpr std::string_view plain = "/._-~";
    constexpr std::string_view digits = "0123456789ABCDEF";
    std::error_code ignored;
    std::string uri = "file:";
    for (const char c : fs::absolute(file, ignored).string()) {
        const auto byte = static_cast<unsigned char>(c);
        if (byte < 0x80 && (std::isalnum(byte) || plain.find(c) != std::string_view::npos))
            uri += c;
        else
            uri += {'%', digits[byte >> 4], digits[byte & 15]};
    }
    return uri + "?mode=ro&immutable=1";
}

class ShinkaFile
{
public:
    ShinkaFile(const fs::path &file, const std::stop_token &stop)
        : m_file(file)
        , m_stop(stop)
        , m_deadline(std::chrono::steady_clock::now() + databaseDeadline)
    {}

    Result<Archive> read()
    {
        m_archive.system = "ShinkaEvolve";
        m_archive.word = "shinka";
        m_archive.name = m_file.filename().string();
        m_archive.digestOf = "the file";
        if (Status digest = takeDigest(); !digest)
            return tl::unexpected(digest.error());
        if (Status opened = open(); !opened)
            return tl::unexpected(opened.error());
        if (Status known = findTable(); !known)
            return tl::unexpected(known.error());
        readBest();
        if (Status rows = readRows(); !rows)
            return tl::unexpected(rows.error());
        sayWhatIsMissing();
        return std::move(m_archive);
    }

private:
    /// In pieces: such a file can be as large as a gigabyte.
    Status takeDigest()
    {
        const FileDescriptor handle = files::openFile(m_file, O_RDONLY | O_NONBLOCK | O_NOFOLLOW);
        if (!handle)
            return files::systemError("read", m_file, errno);
        files::Sha256 digest;
        std::string piece(std::size_t{1} << 20, '\0');
        std::size_t bytes = 0;
        for (;;) {
            const ssize_t count = ::read(handle.get(), piece.data(), piece.size());
            if (count < 0 && errno == EINTR)
                continue;
            if (count < 0)
                return files::systemError("read", m_file, errno);
            if (count == 0)
                break;
            bytes += static_cast<std::size_t>(count);
            if (bytes > maxDatabaseBytes)
                return noDatabase(m_file, "it has more than 1 GiB.");
            if (m_stop.stop_requested())
                return fail(ErrorCode::Cancelled, "The import was stopped; nothing was written.");
            digest.update(std::string_view(piece.data(), static_cast<std::size_t>(count)));
        }
        for (const std::uint8_t byte : digest.finish()) {
            constexpr std::string_view digits = "0123456789abcdef";
            m_archive.sha256 += {digits[byte >> 4], digits[byte & 15]};
        }
        return {};
    }

    Status open()
    {
        sqlite3 *database = nullptr;
        const int opened =
            sqlite3_open_v2(databaseUri(m_file).c_str(), &database,
                            SQLITE_OPEN_READONLY | SQLITE_OPEN_URI | SQLITE_OPEN_NOMUTEX, nullptr);
        m_database.reset(database);
        if (opened != SQLITE_OK)
            return failed();
        for (const auto &[option, value] :
             {std::pair(SQLITE_DBCONFIG_DEFENSIVE, 1), std::pair(SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0),
              std::pair(SQLITE_DBCONFIG_ENABLE_TRIGGER, 0), std::pair(SQLITE_DBCONFIG_ENABLE_VIEW, 0)})
            sqlite3_db_config(database, option, value, nullptr);
        sqlite3_limit(database, SQLITE_LIMIT_LENGTH, maxCellBytes);
        sqlite3_limit(database, SQLITE_LIMIT_ATTACHED, 0);
        sqlite3_limit(database, SQLITE_LIMIT_TRIGGER_DEPTH, 1);
        sqlite3_progress_handler(database, 1000, &ShinkaFile::isOver, this);
        for (const char *pragma : {"PRAGMA cell_size_check = ON", "PRAGMA mmap_size = 0"}) {
            if (sqlite3_exec(database, pragma, nullptr, nullptr, nullptr) != SQLITE_OK)
                return failed();
        }
        return {};
    }

    static int isOver(void *self)
    {
        const auto *file = static_cast<const ShinkaFile *>(self);
        return file->m_stop.stop_requested() || std::chrono::steady_clock::now() > file->m_deadline ? 1 : 0;
    }

    tl::unexpected<Error> failed() const
    {
        if (m_stop.stop_requested())
            return fail(ErrorCode::Cancelled, "The import was stopped; nothing was written.");
        if (sqlite3_errcode(m_database.get()) == SQLITE_INTERRUPT)
            return noDatabase(m_file, "that took more than 30 s.");
        return noDatabase(m_file, "SQLite says '" + firstLine(sqlite3_errmsg(m_database.get())) + "'.");
    }

    StatementHandle prepare(const std::string &sql) const
    {
        sqlite3_stmt *statement = nullptr;
        sqlite3_prepare_v2(m_database.get(), sql.c_str(), -1, &statement, nullptr);
        return StatementHandle(statement);
    }

    static std::string textOf(sqlite3_stmt *statement, int column)
    {
        const auto *text = reinterpret_cast<const char *>(sqlite3_column_text(statement, column));
        return text ? std::string(text, static_cast<std::size_t>(sqlite3_column_bytes(statement, column)))
                    : std::string();
    }

    Status findTable()
    {
        const StatementHandle found =
            prepare("SELECT type, rootpage FROM sqlite_master WHERE name = 'programs' COLLATE NOCASE");
        const int step = found ? sqlite3_step(found.get()) : SQLITE_ERROR;
        if (step == SQLITE_DONE)
            return noDatabase(m_file,
                              "it has no table 'programs'." + (unreadLog().empty() ? "" : ' ' + unreadLog()));
        if (step != SQLITE_ROW)
            return failed();
        const std::string type = textOf(found.get(), 0);
        if (type != "table")
            return noDatabase(m_file, "its 'programs' is no table (" + firstLine(type, 20) + ").");
        if (sqlite3_column_int64(found.get(), 1) <= 0)
            return noDatabase(m_file, "its 'programs' is a virtual table.");
        const StatementHandle columns = prepare("PRAGMA table_info(programs)");
        if (!columns)
            return failed();
        while (sqlite3_step(columns.get()) == SQLITE_ROW)
            m_columns.insert(textOf(columns.get(), 1));
        for (const char *needed : {"id", "code"}) {
            if (m_columns.count(needed) == 0)
                return noDatabase(m_file,
                                  "its table 'programs' has no column '" + std::string(needed) + "'.");
        }
        return {};
    }

    void readBest()
    {
        const StatementHandle kind = prepare(
            "SELECT 1 FROM sqlite_master WHERE name = 'metadata_store' AND type = 'table' AND rootpage > 0");
        if (!kind || sqlite3_step(kind.get()) != SQLITE_ROW)
            return;
        const StatementHandle best =
            prepare("SELECT value FROM metadata_store WHERE key = 'best_program_id' LIMIT 1");
        if (best && sqlite3_step(best.get()) == SQLITE_ROW)
            m_archive.best = textOf(best.get(), 0);
        if (m_archive.best == "None" || m_archive.best.size() > maxProgramIdBytes)
            m_archive.best.clear();
    }

    Status readRows()
    {
        const StatementHandle rows = prepare("SELECT _rowid_ FROM programs ORDER BY _rowid_");
        if (!rows)
            return noDatabase(m_file, "its table 'programs' has no row ids, which ShinkaEvolve's has.");
        std::string sql = "SELECT ";
        for (const char *name : columnNames)
            sql += (m_columns.count(name) > 0 ? std::string(name) : "NULL") + ", ";
        sql.replace(sql.size() - 2, 2, " FROM programs WHERE _rowid_ = ?");
        const StatementHandle row = prepare(sql);
        if (!row)
            return failed();
        int step = SQLITE_ROW;
        while ((step = sqlite3_step(rows.get())) == SQLITE_ROW) {
            const sqlite3_int64 number = sqlite3_column_int64(rows.get(), 0);
            const std::string source = "row " + std::to_string(number);
            if (m_archive.programs.size() + m_archive.skipped.size() >= maxArchivedPrograms
                || m_bytes > maxArchiveBytes) {
                m_archive.skipped.push_back(
                    {source,
                     {},
                     "The rows before it have 20000 programs or 512 MiB of code; it and what comes after it "
                     "were not read.",
                     false,
                     {}});
                return {};
            }
            sqlite3_reset(row.get());
            sqlite3_bind_int64(row.get(), 1, number);
            if (const int got = sqlite3_step(row.get()); got != SQLITE_ROW) {
                if (got == SQLITE_INTERRUPT)
                    return failed();
                m_archive.skipped.push_back(
                    {source,
                     {},
                     "It cannot be read: SQLite says '" + firstLine(sqlite3_errmsg(m_database.get())) + "'.",
                     false,
                     {}});
                continue;
            }
            takeRow(row.get(), source);
        }
        if (step == SQLITE_DONE)
            return {};
        if (m_archive.programs.empty() || step == SQLITE_INTERRUPT)
            return failed();
        m_archive.skipped.push_back(
            {"the table's other rows",
             {},
             "They cannot be read: SQLite says '" + firstLine(sqlite3_errmsg(m_database.get())) + "'.",
             false,
             {}});
        return {};
    }

    enum Column { Id, Code, Language, Parent, Generation, Island, Score, Correct, Metrics, Metadata };
    static constexpr const char *columnNames[] = {
        "id",         "code",           "language", "parent_id",      "generation",
        "island_idx", "combined_score", "correct",  "public_metrics", "metadata"};

    static bool isNumber(sqlite3_stmt *row, int column)
    {
        const int type = sqlite3_column_type(row, column);
        return type == SQLITE_INTEGER || type == SQLITE_FLOAT;
    }

    std::optional<std::int64_t> countOf(sqlite3_stmt *row, int column, const std::string &source)
    {
        constexpr std::int64_t largest = 1'000'000'000;
        if (sqlite3_column_type(row, column) == SQLITE_NULL)
            return std::nullopt;
        const std::int64_t value = sqlite3_column_int64(row, column);
        if (sqlite3_column_type(row, column) == SQLITE_INTEGER && value >= 0 && value <= largest)
            return value;
        m_oddNumbers.add(source);
        return std::nullopt;
    }

    void takeRow(sqlite3_stmt *row, const std::string &source)
    {
        ArchivedProgram program;
        program.source = source;
        program.id = textOf(row, Id);
        program.parent = textOf(row, Parent);
        if (const std::string why = idProblem(program); !why.empty()) {
            m_archive.skipped.push_back({source, {}, why, false, {}});
            return;
        }
        program.code = textOf(row, Code);
        program.language = firstLine(textOf(row, Language), 40);
        program.generation = countOf(row, Generation, source);
        program.island = countOf(row, Island, source);
        program.scoreName = "combined_score";
        if (isNumber(row, Score) && std::isfinite(sqlite3_column_double(row, Score)))
            program.score = sqlite3_column_double(row, Score);
        else if (sqlite3_column_type(row, Score) != SQLITE_NULL)
            m_oddNumbers.add(source);
        if (sqlite3_column_type(row, Correct) == SQLITE_INTEGER)
            program.correct = sqlite3_column_int64(row, Correct) != 0;
        else if (sqlite3_column_type(row, Correct) != SQLITE_NULL)
            m_oddNumbers.add(source);
        if (program.correct)
            program.verdict = *program.correct ? "correct" : "not correct";
        program.metrics = numbersOf(objectOf(row, Metrics, source), program.scoreName);
        const json metadata = objectOf(row, Metadata, source);
        const std::string name = firstLine(textMember(metadata, "patch_name"), 80);
        const std::string description = firstLine(textMember(metadata, "patch_description"));
        program.change = name + (name.empty() || description.empty() ? "" : ": ") + description;
        judgeText(program);
        m_bytes += program.code.size();
        m_archive.programs.push_back(std::move(program));
    }

    json objectOf(sqlite3_stmt *row, int column, const std::string &source)
    {
        const std::string text = textOf(row, column);
        if (text.empty() || text.size() > maxArchiveFileBytes)
            return json::object();
        Result<json> read = readPythonJson(text, source);
        if (!read)
            m_oddObjects.add(source);
        if (!read || !read->is_object())
            return json::object();
        return std::move(*read); // a copy would go as deep as the text does
    }

    /// What a search that runs, or was killed, keeps beside its file; a sentence, empty where there is none.
    std::string unreadLog() const
    {
        std::error_code ignored;
        const fs::path log = m_file.string() + "-wal";
        if (!fs::exists(log, ignored) || fs::file_size(log, ignored) == 0)
            return {};
        return "Beside the file lies " + log.filename().string()
               + ", which is not read: what is only there is missing. It gets into the file when the search ends, or with 'PRAGMA "
                 "wal_checkpoint' in sqlite3.";
    }

    void sayWhatIsMissing()
    {
        if (const std::string log = unreadLog(); !log.empty())
            m_archive.notes.push_back(log);
        if (m_oddNumbers.count() > 0)
            m_archive.notes.push_back(
                "Generations, islands, scores or verdicts that are no such numbers were taken for not stated: "
                + m_oddNumbers.text() + '.');
        if (m_oddObjects.count() > 0)
            m_archive.notes.push_back(
                "Metrics or metadata that are no JSON were passed over: " + m_oddObjects.text() + '.');
    }

    const fs::path m_file;
    const std::stop_token m_stop;
    const std::chrono::steady_clock::time_point m_deadline;
    DatabaseHandle m_database;
    std::set<std::string> m_columns;
    Archive m_archive;
    std::size_t m_bytes = 0; ///< of code
    Tally m_oddNumbers;
    Tally m_oddObjects;
};

} // namespace

bool readsSqlite()
{
    return true;
}

Result<Archive> readShinka(const fs::path &file, const std::stop_token &stop)
{
    return ShinkaFile(file, stop).read();
}

#else

bool readsSqlite()
{
    return false;
}

Result<Archive> readShinka(const fs::path &, const std::stop_token &)
{
    return fail(ErrorCode::Unavailable, "This build cannot read SQLite files.",
                "Install libsqlite3-dev and build again.");
}

#endif

} // namespace klineage::interop
