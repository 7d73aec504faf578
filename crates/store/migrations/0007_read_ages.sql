-- `read_age_ms`: at which age a range was read last. It was the number of a rung, whose age is not
-- known here: what waited for a rung above the second look is taken as read at that one's least
-- age, and read again.
alter table gap rename column rung to read_age_ms;
update gap set read_age_ms = case when read_age_ms > 0 then 15000 else 0 end;
