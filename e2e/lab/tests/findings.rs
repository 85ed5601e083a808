//! Bugs that the laboratory has found, each as the smallest schedule that showed it. Changing a scenario changes what its seeds
//! mean: then its findings must be searched again.

use nodegate::engine::kind::Watch;
use nodegate_lab::sim::Fault;
use nodegate_lab::sim::fault::Side;
use nodegate_lab::sim::script::holds;
use nodegate_lab::sim::time::ms;

#[test]
fn a_node_is_not_closed_on_the_word_of_a_pods_time_by_another_clock() {
    let faults = [Fault::Freeze {
        instance: 0,
        at: ms(26_000),
        lasts: ms(60_000),
    }];
    holds("regate-components", 1_882_532_181_312_758, &faults);
}

#[test]
fn a_clock_that_is_set_back_opens_no_node_on_what_is_from_before_its_reboot() {
    let step = |at, by| Fault::ClockStep {
        instance: 0,
        at: ms(at),
        by,
    };
    let faults = [step(46_845, -60), step(41_000, 60), step(77_000, -60)];
    holds("regate-components", 12_779_710_660_202_052_773, &faults);
}

#[test]
fn what_is_from_before_a_reboot_is_told_by_the_kubelets_clock_where_ours_is_behind() {
    let faults = [Fault::ClockStep {
        instance: 0,
        at: ms(3000),
        by: -60,
    }];
    holds("regate-components", 5_115_703_330_753_455_706, &faults);
}

#[test]
fn a_later_rule_opens_no_node_while_the_earlier_one_waits_for_its_finalizer() {
    let faults = [Fault::AnswerLost {
        instance: 0,
        write: 0,
        done: false,
    }];
    holds("conflict", 1_882_532_981_424_256, &faults);
}

#[test]
fn a_heartbeat_from_the_future_opens_no_node() {
    let faults = [
        Fault::Kill {
            instance: 0,
            write: 17,
            side: Side::After,
            down: ms(20_000),
        },
        Fault::ClockStep {
            instance: 0,
            at: ms(78_000),
            by: -86_400,
        },
    ];
    holds("heartbeat", 4_304_040_446_961_340_149, &faults);
}

#[test]
fn what_was_missed_for_long_opens_no_node_because_it_is_shown_now() {
    let faults = [
        Fault::Freeze {
            instance: 0,
            at: ms(7000),
            lasts: ms(102_000),
        },
        Fault::Partition {
            instance: 0,
            at: ms(105_000),
            lasts: ms(17_000),
        },
    ];
    holds("heartbeat", 11_435_966_768_514_576_978, &faults);
}

#[test]
fn no_claim_is_deleted_by_a_process_that_was_told_to_stop() {
    let faults = [Fault::Stop {
        instance: 0,
        at: ms(65_024),
        down: ms(2000),
    }];
    holds("replace", 15_697_584_298_911_533_156, &faults);
}

#[test]
fn the_rules_that_were_read_before_a_suspension_close_no_node_after_it() {
    let faults = [
        Fault::Suspend {
            instance: 0,
            at: ms(22_364),
            lasts: ms(46_994),
        },
        Fault::Freeze {
            instance: 0,
            at: ms(5662),
            lasts: ms(16_511),
        },
    ];
    holds("dry-run-again", 16_081_799_182_427_139_999, &faults);
}

#[test]
fn a_rule_that_was_suspended_unseen_closes_no_node_though_its_status_was_written() {
    let faults = [
        Fault::Lagging {
            watch: Watch::Rules,
            at: ms(23_000),
            lasts: ms(49_000),
        },
        Fault::Stop {
            instance: 0,
            at: ms(6000),
            down: ms(2000),
        },
    ];
    holds("rule-suspended", 5_748_426_317_929_076_952, &faults);
}

#[test]
fn a_node_that_was_in_use_during_a_partition_is_not_closed_as_a_joining_one() {
    let faults = [partition(6299, 92_653)];
    holds("partial-outage", 256_875_485_107_754_319, &faults);
}

#[test]
fn the_command_line_need_not_know_how_long_a_controller_was_blind() {
    let faults = [partition(10_908, 93_445)];
    holds("release-forged", 13_893_861_977_724_604_059, &faults);
}

#[test]
fn an_evaluation_that_was_seen_to_be_collected_is_made_anew() {
    let faults = [Fault::SilentDeath {
        watch: Watch::Nodes,
        at: ms(31_000),
    }];
    holds("evaluations", 18_251_618_485_543_707_849, &faults);
}

fn partition(at: u64, lasts: u64) -> Fault {
    Fault::Partition {
        instance: 0,
        at: ms(at),
        lasts: ms(lasts),
    }
}
