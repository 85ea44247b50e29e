// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/manual/pages.h"

#include <CLI/CLI.hpp>

#include <QTest>

using namespace klineage::manual;

namespace {

/// A program with all that a page has to show.
Command example()
{
    CLI::App app("Makes a thing.", "maker");
    static bool flag = false;
    app.add_flag("--json", flag, "Print JSON");
    CLI::App *run = app.add_subcommand("run", "Runs it's [way]: fast");
    static std::string text;
    static std::vector<std::string> texts;
    run->add_option("--kind,-k", text, "What kind")->check(CLI::IsMember({"one", "two"}));
    run->add_option("--to", texts, "Where to")->type_name("DIR");
    run->add_option("FILE", text, ".first of \\all")->required();
    run->add_flag("--json", flag, "Print JSON");
    run->add_option("--secret", text, "Hidden")->group("");
    run->footer("a line\n  another-one");
    app.add_subcommand("worker", "Hidden")->group("");
    return commandOf(app);
}

bool has(const std::string &text, const char *part)
{
    return text.find(part) != std::string::npos;
}

} // namespace

class TestManualPages : public QObject
{
    Q_OBJECT

private slots:
    void theTreeIsThatOfHelp()
    {
        const Command program = example();
        QCOMPARE(program.name, std::string("maker"));
        QCOMPARE(program.commands.size(), std::size_t{1});
        const Command &run = program.commands[0];
        QCOMPARE(run.arguments.size(), std::size_t{1});
        QCOMPARE(run.arguments[0].value, std::string("FILE"));
        QVERIFY(run.arguments[0].required);
        for (const Option &option : run.options) {
            QVERIFY(option.names.back() != "--secret");
            if (option.names.back() == "--kind") {
                QCOMPARE(option.names.front(), std::string("-k"));
                QCOMPARE(option.choices, (std::vector<std::string>{"one", "two"}));
            }
            if (option.names.back() == "--to")
                QVERIFY(option.repeats && option.value == "DIR" && option.choices.empty());
            if (option.names.back() == "--json")
                QVERIFY(option.value.empty() && !option.repeats);
        }
    }

    void theManualPageSaysItOnce()
    {
        const std::string page = manPage(example());
        QVERIFY2(has(page, ".TH MAKER 1") && has(page, "maker \\- Makes a thing\n"), page.c_str());
        QVERIFY2(has(page, ".SS \\fBrun\\fR [\\fIoptions\\fR] \\fIFILE\\fR\n"), page.c_str());
        QVERIFY2(has(page, "\\fB\\-k\\fR, \\fB\\-\\-kind\\fR \\fBone|two\\fR\nWhat kind\n"), page.c_str());
        QVERIFY2(has(page, "\n\\&.first of \\eall\n"), page.c_str()); // no request of roff
        QVERIFY2(has(page, ".nf\na line\n  another\\-one\n.fi\n"), page.c_str());
        QCOMPARE(page.find("Print JSON"), page.rfind("Print JSON"));
        QVERIFY2(!has(page, "Hidden"), page.c_str());
    }

    void completionsAreQuoted()
    {
        const Command program = example();
        const std::string bash = bashCompletion(program);
        QVERIFY2(has(bash, "' run --kind') words='one two' ;;"), bash.c_str());
        QVERIFY2(has(bash, "' run --to') return ;;"), bash.c_str());
        const std::string zsh = zshCompletion(program);
        QVERIFY2(zsh.starts_with("#compdef maker\n"), zsh.c_str());
        QVERIFY2(has(zsh, "'run:Runs it'\\''s [way]\\: fast'"), zsh.c_str());
        QVERIFY2(has(zsh, "'--kind[What kind]:TEXT:(one two)'"), zsh.c_str());
        const std::string fish = fishCompletion(program);
        QVERIFY2(has(fish, "-a run -d 'Runs it\\'s [way]: fast'"), fish.c_str());
        QVERIFY2(has(fish, "-s k -l kind -x -a 'one two' -d 'What kind'"), fish.c_str());
    }
};

QTEST_GUILESS_MAIN(TestManualPages)
#include "tst_manualpages.moc"
